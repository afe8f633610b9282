// From ids to text and back through the whole program: characters that come in parts, spaces, ids
// at the end of the vocabulary, tokens that end an answer, and vocabularies that do not fit.

#include "compute/batch.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "compute/tokenizer/utf8.hpp"
#include "tests/paths.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/scripted_model.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <unistd.h>

using namespace troupe;
using namespace troupe::tests;

namespace {

std::unique_ptr<compute::tokenizer> open_tokenizer(const std::filesystem::path& folder) {
  auto opened = compute::tokenizer::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? std::string{} : opened.error().what));
  return std::move(*opened);
}

/// The id of one byte in a byte-level vocabulary; bytes beyond ASCII are spelt from U+0100 on, but
/// for those that are printable in Latin-1.
token_id id_of_byte(const compute::tokenizer& words, unsigned byte) {
  char32_t spelt = byte;
  const auto printable = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  if (!printable(byte)) {
    spelt = 0x100;
    for (unsigned below = 0; below < byte; ++below)
      spelt += printable(below) ? 0 : 1;
  }
  std::string piece;
  compute::utf8::append(piece, spelt);
  const auto id = words.id_of(piece);
  BOOST_REQUIRE(id);
  return *id;
}

std::string request(const std::vector<token_id>& tokens, std::size_t most = 100) {
  return fmt::format(R"({{"tokens": [{}], "max_tokens": {}}})", fmt::join(tokens, ", "), most);
}

/// What `troupe generate` writes to standard output, in the pieces that a reader sees.
std::vector<std::string> pieces_of(const cluster& which, const std::string& prompt) {
  const auto command = fmt::format("XDG_RUNTIME_DIR={} {} generate {} -q --prompt '{}' < /dev/null",
                                   which.folder().path().string(),
                                   troupe_program().string(),
                                   which.file().string(),
                                   prompt);
  FILE* stream = ::popen(command.c_str(), "r");
  BOOST_REQUIRE(stream != nullptr);
  std::vector<std::string> pieces;
  char buffer[4096];
  for (ssize_t got; (got = ::read(::fileno(stream), buffer, sizeof buffer)) > 0;)
    pieces.emplace_back(buffer, static_cast<std::size_t>(got));
  BOOST_TEST(::pclose(stream) == 0);
  return pieces;
}

const std::string face = "\U0001F600";  // F0 9F 98 80
const std::string smile = "\U0001F60A"; // F0 9F 98 8A
const std::string han = "\u6F22";       // E6 BC A2
constexpr token_id two_and = 2047, and_two = 2046, three_and = 2045;

} // namespace

// A face as 1+1+1+1 tokens, one as 2+2, a smile as 3+1, a Han character byte by byte.
BOOST_AUTO_TEST_CASE(C03_characters_in_parts_come_whole_alone_and_among_others) {
  const temporary_folder parts;
  write_tokenizer_of_parts(parts.path());
  const auto words = open_tokenizer(parts.path());
  std::vector<token_id> said{*words->id_of("!")};
  const auto bytes = [&](const std::string& text) {
    for (const unsigned char byte : text)
      said.push_back(id_of_byte(*words, byte));
  };
  bytes(face + "x");
  said.insert(said.end(), {two_and, and_two});
  bytes("y");
  said.insert(said.end(), {three_and, id_of_byte(*words, 0x8A)});
  bytes(han + "z");
  said.push_back(1); // the end
  script wanted;
  wanted.follows = chain(said);
  wanted.tokenizer = parts.path();
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  const auto whole = face + "x" + face + "y" + smile + han + "z";
  for (const std::size_t batch : {1u, 4u}) {
    const std::vector<std::string> prompts(batch, request({said.front()}));
    for (const auto& answer : two.generate(prompts)) {
      BOOST_TEST(answer.text == whole);
      BOOST_TEST(answer.finish == "stop");
      BOOST_TEST(answer.tokens == std::vector<token_id>(said.begin() + 1, said.end()),
                 boost::test_tools::per_element());
    }
  }
  std::string joined;
  for (const auto& piece : pieces_of(two, "!")) {
    BOOST_TEST(!compute::utf8::first_invalid_byte(piece), "a piece ends within a character");
    joined += piece;
  }
  BOOST_TEST(joined == whole + "\n");
}

// Row D09, too: the answer is text and JSON, whatever bytes the model says.
BOOST_AUTO_TEST_CASE(C05_bytes_that_are_no_text_are_shown_and_not_kept) {
  const auto words = open_tokenizer(std::filesystem::path{TROUPE_SOURCE_DIR} / "config/demo");
  std::vector<token_id> said{*words->id_of("!")};
  for (unsigned byte = 0x80; byte < 0x80 + 50; ++byte)
    said.push_back(id_of_byte(*words, byte));
  said.push_back(1);
  script wanted;
  wanted.follows = chain(said);
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  std::string marks;
  for (int i = 0; i < 50; ++i)
    marks += "\uFFFD";
  const auto answer = two.generate({request({said.front()})}).front();
  BOOST_TEST(answer.text == marks);
  const auto pieces = pieces_of(two, "!");
  std::string joined;
  for (const auto& piece : pieces)
    joined += piece;
  BOOST_TEST(joined == marks + "\n");
}

BOOST_AUTO_TEST_CASE(C01_merges_in_both_spellings_give_the_same_answer) {
  compute::random_model shape;
  const served_model model{shape};
  const std::string prompt = R"({"prompt": "In the beginning God created", "max_tokens": 8})";
  const auto pairs = cluster{in_one_process(model.folder(), 2)}.generate({prompt}).front();
  std::filesystem::remove(model.folder() / "tokenizer.json");
  std::filesystem::remove(model.folder() / "tokenizer_config.json");
  write_tokenizer_of_strings(model.folder());
  const auto strings = cluster{in_one_process(model.folder(), 2)}.generate({prompt}).front();
  BOOST_TEST(pairs.digests == strings.digests, boost::test_tools::per_element());
  BOOST_TEST(pairs.text == strings.text);
}

BOOST_AUTO_TEST_CASE(C06_C07_sentence_pieces_keep_their_spaces) {
  for (const auto* name : {"sentencepiece_bpe", "llama2_new", "llama2_old"}) {
    const auto folder = std::filesystem::path{TROUPE_SOURCE_DIR} / "tests/golden/tokenizer" / name;
    const auto words = open_tokenizer(folder);
    auto said = words->encode("the quick fox", false);
    BOOST_REQUIRE(said);
    // Each token at most once, or the script would run in a circle.
    std::vector<token_id> once;
    for (const auto id : *said)
      if (std::find(once.begin(), once.end(), id) == once.end())
        once.push_back(id);
    BOOST_REQUIRE(once.size() >= 4u);
    script wanted;
    wanted.follows = chain(once);
    wanted.vocabulary = words->vocabulary_size();
    wanted.tokenizer = folder;
    const scripted_model model{wanted};
    const cluster two{in_one_process(model.folder(), 2)};
    const auto answer = two.generate({token_prompt({once.front()}, once.size() - 1)}).front();
    const auto whole = words->decode(once, true);
    const auto prompt = words->decode({once.data(), 1}, true);
    BOOST_REQUIRE((whole && prompt));
    BOOST_TEST(whole->find(' ') != std::string::npos, *whole);
    BOOST_TEST(*prompt + answer.text == *whole, name);
  }
}

BOOST_AUTO_TEST_CASE(C07_the_first_token_keeps_its_space) {
  const auto words = open_tokenizer(std::filesystem::path{TROUPE_SOURCE_DIR} / "config/demo");
  const auto the = words->id_of("\u0120the");
  BOOST_REQUIRE(the);
  script wanted;
  wanted.follows = chain({*words->id_of("!"), *the, 1});
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  BOOST_TEST(two.generate({R"({"prompt": "!"})"}).front().text == " the");
  std::string joined;
  for (const auto& piece : pieces_of(two, "!"))
    joined += piece;
  BOOST_TEST(joined == " the\n");
}

BOOST_AUTO_TEST_CASE(B13_any_of_the_end_tokens_ends_an_answer) {
  script wanted;
  wanted.follows = chain({10, 11, 7}, chain({20, 21, 2}, chain({30, 31, 1}, chain({40, 41, 42}))));
  wanted.end_tokens = {2, 7}; // the tokenizer's own is 1
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  const auto answers =
    two.generate({request({10}), request({20}), request({30}), request({40}, 2)});
  for (std::size_t i = 0; i < 3; ++i)
    BOOST_TEST(answers[i].finish == "stop", i);
  BOOST_TEST(answers[0].tokens == (std::vector<token_id>{11, 7}), boost::test_tools::per_element());
  BOOST_TEST(answers[3].finish == "length");
}

BOOST_AUTO_TEST_CASE(B15_large_ids_are_read_and_chosen) {
  script wanted;
  wanted.follows = chain({1000, 2047, 1001, 2040, 1});
  const scripted_model model{wanted};
  for (const std::size_t tensor : {1u, 3u}) {
    const cluster shaped{in_one_process(model.folder(), 2, tensor)};
    const auto answer = shaped.generate({request({5, 1000})}).front();
    BOOST_TEST(answer.tokens == (std::vector<token_id>{2047, 1001, 2040, 1}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(B17_ids_outside_of_the_vocabulary_are_refused) {
  script wanted;
  wanted.follows = chain({10, 11, 1});
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  const auto ran =
    two.try_generate({request({2048}), request({10}), request({4294967295u}), request({10, 2051})});
  BOOST_TEST(ran.code == 2, ran.all());
  const auto answers = read_answers(ran.lines);
  BOOST_REQUIRE(answers.size() == 4u);
  for (const std::size_t bad : {0u, 2u, 3u})
    BOOST_TEST(answers[bad].what.find("outside of the model's vocabulary of 2048")
                 != std::string::npos,
               answers[bad].what);
  BOOST_TEST(answers[1].finish == "stop");
}

BOOST_AUTO_TEST_CASE(B17_an_added_token_beyond_the_vocabulary_is_refused_or_padded) {
  const temporary_folder words;
  write_tokenizer_with_extra(words.path(), 2051);
  script wanted;
  wanted.follows = chain({2051, 11, 1});
  wanted.vocabulary = 2058; // rows for it, and some more
  wanted.tokenizer = words.path();
  const scripted_model padded{wanted};
  const cluster two{in_one_process(padded.folder(), 2)};
  const auto answer = two.generate({R"({"prompt": "In <|extra|>"})"},
                                   {"--set", "model.allow_vocabulary_padding=true"});
  BOOST_TEST(answer.front().tokens == (std::vector<token_id>{11, 1}),
             boost::test_tools::per_element());
  const served_model small{compute::random_model{}}; // 2048 rows
  const cluster one{in_one_process(small.folder(), 2)};
  const auto ran = one.try_generate({R"({"prompt": "In <|extra|>"})"},
                                    {"--set", "model.tokenizer=" + words.path().string()});
  BOOST_TEST(ran.code == 6, ran.all());
  BOOST_TEST(ran.mentions("ids up to 2051 ('<|extra|>')"), ran.all());
}

// A tokenizer of another model, or a model that is padded.
BOOST_AUTO_TEST_CASE(C09_B17_vocabularies_that_differ_are_refused_unless_it_is_padding) {
  const auto folder_with = [](std::size_t vocabulary) {
    script wanted;
    wanted.follows = chain({10, 11, 1});
    wanted.vocabulary = vocabulary;
    return std::make_unique<scripted_model>(wanted);
  };
  const auto padded = folder_with(2058);
  const cluster more{in_one_process(padded->folder(), 2)};
  const auto refused = more.try_generate({request({10})});
  BOOST_TEST(refused.code == 6, refused.all());
  BOOST_TEST(refused.mentions("tokenizer has 2048 ids, but the model has 2058 rows"),
             refused.all());
  BOOST_TEST(refused.mentions("model.allow_vocabulary_padding"), refused.all());
  const std::vector<std::string> allow{"--set", "model.allow_vocabulary_padding=true"};
  BOOST_TEST(more.generate({request({10})}, allow).front().finish == "stop");

  const auto small = folder_with(2038);
  const cluster fewer{in_one_process(small->folder(), 2)};
  const auto ran = fewer.try_generate({request({10})}, allow);
  BOOST_TEST(ran.code == 6, ran.all());
  BOOST_TEST(ran.mentions("tokenizer has ids up to 2047"), ran.all());
  BOOST_TEST(ran.mentions("the model has 2038 rows"), ran.all());
}
