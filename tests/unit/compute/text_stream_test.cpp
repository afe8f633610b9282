#include "compute/tokenizer/text_stream.hpp"

#include "compute/tokenizer/tokenizer.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace troupe;
using namespace troupe::compute;

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

std::unique_ptr<tokenizer> open(const std::string& name) {
  auto opened = tokenizer::open(TROUPE_SOURCE_DIR "/tests/golden/tokenizer/" + name);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  return std::move(*opened);
}

/// The token of one raw byte.
token_id byte_token(const tokenizer& vocabulary, unsigned char byte) {
  static const char digits[] = "0123456789ABCDEF";
  std::string piece = std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">";
  if (auto id = vocabulary.id_of(piece))
    return *id;
  // A byte-level vocabulary: the byte is the one whose token decodes to it.
  for (token_id id = 0; id < vocabulary.vocabulary_size(); ++id)
    if (vocabulary.entries().text(id) == std::string(1, static_cast<char>(byte)))
      return id;
  BOOST_FAIL("each byte has a token");
  return 0;
}

std::vector<token_id> byte_tokens(const tokenizer& vocabulary, std::string_view bytes) {
  std::vector<token_id> ids;
  for (char byte : bytes)
    ids.push_back(byte_token(vocabulary, static_cast<unsigned char>(byte)));
  return ids;
}

std::string joined(text_stream stream, const std::vector<token_id>& ids) {
  std::string text;
  for (token_id id : ids)
    text += stream.push(id);
  return text + stream.flush();
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + what.size()))
    ++found;
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(C03_a_character_in_four_tokens_comes_out_whole_with_the_last) {
  for (const char* name : {"gpt2_pairs", "llama2_old", "sentencepiece_bpe"}) {
    auto vocabulary = open(name);
    for (std::string character : {"\xF0\x9F\x8E\x89", "\xE6\x97\xA5", "\xC3\xA9"}) {
      auto ids = byte_tokens(*vocabulary, character);
      text_stream stream(*vocabulary, true);
      for (std::size_t at = 0; at + 1 < ids.size(); ++at)
        BOOST_TEST(stream.push(ids[at]) == "");
      BOOST_TEST(stream.push(ids.back()) == character);
      BOOST_TEST(stream.flush() == "");
    }
  }
}

BOOST_AUTO_TEST_CASE(C03_characters_cut_two_and_two_or_three_and_one) {
  // Tokens of several bytes that begin in one character and end in another.
  auto vocabulary = open("gpt2_pairs");
  std::mt19937 random(3);
  std::string text = "x\xF0\x9F\x8E\x89\xF0\x9F\x98\x80\xE6\x97\xA5\xE6\x9C\xAC y\xC3\xA9";
  for (int round = 0; round < 200; ++round) {
    std::vector<token_id> ids;
    std::string_view rest = text;
    while (!rest.empty()) {
      std::vector<token_id> fitting;
      for (token_id id = 0; id < vocabulary->vocabulary_size(); ++id)
        if (auto piece = vocabulary->entries().text(id); !piece.empty() && rest.starts_with(piece))
          fitting.push_back(id);
      ids.push_back(fitting[random() % fitting.size()]);
      rest.remove_prefix(vocabulary->entries().text(ids.back()).size());
    }
    text_stream stream(*vocabulary, true);
    std::string shown;
    for (token_id id : ids) {
      auto chunk = stream.push(id);
      BOOST_TEST(chunk.find(replacement) == std::string::npos);
      shown += chunk;
    }
    BOOST_TEST(shown + stream.flush() == text);
    BOOST_TEST(*vocabulary->decode(ids, true) == text);
  }
}

BOOST_AUTO_TEST_CASE(C05_invalid_bytes_are_shown_after_four_tokens_at_the_latest) {
  for (const char* name : {"gpt2_pairs", "llama2_new", "sentencepiece_bpe"}) {
    auto vocabulary = open(name);
    std::mt19937 random(5);
    for (const std::string bytes :
         {"\xFF", "\x80", "\xC3", "\xE6\x97", "\xF0\x9F\x8E", "\xF4\x90", "\xC0\xAF", "\xED\xA0"}) {
      std::vector<token_id> ids;
      for (int token = 0; token < 50; ++token)
        ids.push_back(
          byte_token(*vocabulary, static_cast<unsigned char>(bytes[token % bytes.size()])));
      text_stream stream(*vocabulary, true);
      std::string shown;
      int silent = 0;
      for (token_id id : ids) {
        auto chunk = stream.push(id);
        silent = chunk.empty() ? silent + 1 : 0;
        BOOST_TEST(silent < 4);
        shown += chunk;
      }
      shown += stream.flush();
      BOOST_TEST(count(shown, replacement) >= 50 / 3);
      BOOST_TEST(shown == *vocabulary->decode(ids, true));
    }
  }
}

BOOST_AUTO_TEST_CASE(C05_replacement_follows_the_reference_of_each_kind) {
  // Rust's from_utf8_lossy: one mark for a part of a character that could have gone on.
  auto byte_level = open("gpt2_pairs");
  auto text_of = [](const tokenizer& vocabulary, std::string_view bytes) {
    return joined(text_stream(vocabulary, true), byte_tokens(vocabulary, bytes));
  };
  std::string mark(replacement);
  BOOST_TEST(text_of(*byte_level,
                     "a\xF0\x9F\x8E"
                     "b")
             == "a" + mark + "b");
  BOOST_TEST(text_of(*byte_level, "\xE6\x97\xE6\x97\xA5") == mark + "\xE6\x97\xA5");
  BOOST_TEST(text_of(*byte_level, "\xF0\x80\x80\x80") == mark + mark + mark + mark);
  BOOST_TEST(text_of(*byte_level, "\xED\xA0\x80") == mark + mark + mark); // a surrogate
  // sentencepiece: one mark a byte, and whole characters beside them survive.
  auto fallback = open("sentencepiece_bpe");
  BOOST_TEST(text_of(*fallback,
                     "a\xF0\x9F\x8E"
                     "b")
             == "a" + mark + mark + mark + "b");
  BOOST_TEST(text_of(*fallback, "\xE6\x97\xA5\xFF") == "\xE6\x97\xA5" + mark);
}

BOOST_AUTO_TEST_CASE(C05_any_bytes_give_valid_text_and_the_same_in_one_piece) {
  for (const char* name : {"gpt2_pairs", "llama2_old", "sentencepiece_bpe"}) {
    auto vocabulary = open(name);
    std::mt19937 random(17);
    for (int round = 0; round < 200; ++round) {
      std::vector<token_id> ids;
      for (int token = 0; token < 40; ++token)
        ids.push_back(
          random() % 3 == 0
            ? static_cast<token_id>(random() % vocabulary->vocabulary_size())
            : byte_token(*vocabulary, static_cast<unsigned char>(0x80 + random() % 128)));
      std::string text = joined(text_stream(*vocabulary, false), ids);
      BOOST_TEST(!utf8::first_invalid_byte(text));
      BOOST_TEST(text == *vocabulary->decode(ids, false));
    }
  }
}

BOOST_AUTO_TEST_CASE(C06_a_sentencepiece_stream_keeps_its_spaces) {
  for (const char* name : {"llama2_old", "llama2_new", "sentencepiece_bpe"}) {
    auto vocabulary = open(name);
    std::string text = "The earth was without form, and void";
    auto ids = vocabulary->encode(text, true);
    BOOST_TEST(joined(text_stream(*vocabulary, true), *ids) == text);
  }
}

BOOST_AUTO_TEST_CASE(C07_the_first_token_of_an_answer_keeps_its_space_behind_a_prompt) {
  for (const char* name : {"llama2_old", "llama2_new", "sentencepiece_bpe"}) {
    auto vocabulary = open(name);
    auto the = vocabulary->id_of("\xE2\x96\x81the");
    BOOST_REQUIRE(the);
    auto prompt = *vocabulary->encode("In", true);
    prompt.resize(2); // bos and one piece, without an eos
    BOOST_TEST(text_stream(*vocabulary, true, prompt).push(*the) == " the");
    // With nothing shown before it, the space is the tokenizer's own and goes.
    BOOST_TEST(text_stream(*vocabulary, true).push(*the) == "the");
    BOOST_TEST(text_stream(*vocabulary, true, std::vector{*vocabulary->bos()}).push(*the) == "the");
    // A prompt that ends with a space, and a continued chat.
    auto spaced = *vocabulary->encode("In ", false);
    BOOST_TEST(text_stream(*vocabulary, true, spaced).push(*the) == " the");
    auto chat = *vocabulary->encode("Hi", true);
    chat.push_back(*vocabulary->eos());
    BOOST_TEST(text_stream(*vocabulary, true, chat).push(*the) == " the");
  }
  auto byte_level = open("llama3"); // its spaces are its own
  auto the = byte_level->id_of("\xC4\xA0the");
  BOOST_TEST(text_stream(*byte_level, true).push(*the) == " the");
  BOOST_TEST(text_stream(*byte_level, true, *byte_level->encode("In", true)).push(*the) == " the");
}

BOOST_AUTO_TEST_CASE(a_character_begun_by_the_prompt_belongs_to_the_answer) {
  auto vocabulary = open("gpt2_pairs");
  auto ids = byte_tokens(*vocabulary, "a\xE6\x97\xA5");
  text_stream stream(*vocabulary, true, std::span(ids).first(3));
  BOOST_TEST(stream.push(ids[3]) == "\xE6\x97\xA5");
}

BOOST_AUTO_TEST_CASE(special_tokens_are_skipped_or_shown_as_asked) {
  auto vocabulary = open("llama3");
  BOOST_TEST(text_stream(*vocabulary, true).push(*vocabulary->eos()) == "");
  BOOST_TEST(text_stream(*vocabulary, false).push(*vocabulary->eos()) == "<|eot_id|>");
}

BOOST_AUTO_TEST_CASE(B17_an_id_beyond_the_vocabulary_is_silent_in_a_stream_and_an_error_elsewhere) {
  auto vocabulary = open("llama3");
  for (token_id id : {static_cast<token_id>(vocabulary->vocabulary_size()), ~token_id{0}}) {
    BOOST_TEST(text_stream(*vocabulary, true).push(id) == "");
    BOOST_TEST(vocabulary->piece(id) == "");
    BOOST_TEST(!vocabulary->is_special(id));
    auto text = vocabulary->decode(std::vector<token_id>{1, id}, true);
    BOOST_REQUIRE(!text);
    BOOST_TEST((text.error().code == errc::invalid_argument));
    BOOST_TEST(text.error().what.find(std::to_string(id)) != std::string::npos);
  }
}
