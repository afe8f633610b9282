// Every text of the fixtures, against what the reference implementations made of it
// (tests/golden/make_tokenizer_fixtures.py).

#include "compute/tokenizer/text_stream.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "tests/paths.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::compute;
using nlohmann::json;

namespace {

const std::filesystem::path golden = TROUPE_SOURCE_DIR "/tests/golden/tokenizer";

json load(const std::filesystem::path& file) {
  std::ifstream stream(file);
  BOOST_REQUIRE_MESSAGE(stream, file << " is there");
  return json::parse(stream);
}

std::unique_ptr<tokenizer> open(const std::filesystem::path& folder) {
  auto opened = tokenizer::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  return std::move(*opened);
}

struct fixture {
  std::unique_ptr<tokenizer> subject;
  std::vector<std::string> texts;
  json expected;

  explicit fixture(const std::string& name)
    : subject(open(name == "demo" ? TROUPE_SOURCE_DIR "/config/demo" : golden / name)),
      expected(load(golden / name / "expected.json")) {
    auto own = golden / name / "texts.json";
    texts = load(std::filesystem::exists(own) ? own : golden / "texts.json");
    BOOST_REQUIRE_EQUAL(texts.size(), expected["ids"].size());
  }

  std::vector<token_id> ids(std::size_t at) const { return expected["ids"][at]; }

  std::vector<token_id> special_ids(std::size_t at) const {
    std::vector<token_id> all = expected["before"], after = expected["after"];
    auto plain = ids(at);
    all.insert(all.end(), plain.begin(), plain.end());
    all.insert(all.end(), after.begin(), after.end());
    return all;
  }

  std::string decoded(const char* which, std::size_t at) const {
    const auto& text = expected[which][at];
    return text.is_null() ? texts[at] : text.get<std::string>();
  }
};

const char* const names[] = {"gpt2_pairs",
                             "gpt2_strings",
                             "gpt2_prefix_space",
                             "llama3",
                             "qwen2",
                             "llama2_old",
                             "llama2_new",
                             "metaspace_words",
                             "word_suffix",
                             "split_behaviors",
                             "sentencepiece_bpe",
                             "sentencepiece_unigram",
                             "demo"};

bool is_sentencepiece(const std::string& name) {
  return name.starts_with("sentencepiece");
}

} // namespace

BOOST_DATA_TEST_CASE(ids_are_those_of_the_reference, names, name) {
  fixture given(name);
  for (std::size_t at = 0; at < given.texts.size(); ++at) {
    auto plain = given.subject->encode(given.texts[at], false);
    auto special = given.subject->encode(given.texts[at], true);
    BOOST_REQUIRE(plain && special);
    BOOST_TEST_CONTEXT("text " << at << ": " << json(given.texts[at])) {
      BOOST_TEST(*plain == given.ids(at), boost::test_tools::per_element());
      BOOST_TEST(*special == given.special_ids(at), boost::test_tools::per_element());
    }
  }
}

BOOST_DATA_TEST_CASE(decoded_text_is_that_of_the_reference, names, name) {
  fixture given(name);
  for (std::size_t at = 0; at < given.texts.size(); ++at) {
    auto skipped = given.subject->decode(given.special_ids(at), true);
    auto shown = given.subject->decode(given.special_ids(at), false);
    BOOST_REQUIRE(skipped && shown);
    BOOST_TEST_CONTEXT("text " << at << ": " << json(given.texts[at])) {
      BOOST_TEST(*skipped == given.decoded("skipped", at));
      if (!is_sentencepiece(name)) // that library has no such switch
        BOOST_TEST(*shown == given.decoded("shown", at));
    }
  }
}

BOOST_DATA_TEST_CASE(C06_joined_chunks_are_the_full_decode, names, name) {
  fixture given(name);
  for (std::size_t at = 0; at < given.texts.size(); ++at)
    for (bool skip : {false, true}) {
      text_stream stream(*given.subject, skip);
      std::string joined;
      for (token_id token : given.special_ids(at))
        joined += stream.push(token);
      joined += stream.flush();
      BOOST_TEST(joined == *given.subject->decode(given.special_ids(at), skip));
    }
}

// The rule for an answer's first token, for every place at which a sequence can be cut.
BOOST_DATA_TEST_CASE(C07_an_answer_is_the_whole_text_without_the_prompt, names, name) {
  fixture given(name);
  for (std::size_t at = 0; at < given.texts.size(); at += 7) {
    auto all = given.special_ids(at);
    std::string whole = *given.subject->decode(all, true);
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
      std::span<const token_id> prompt(all.data(), cut);
      std::string shown;
      text_stream before(*given.subject, true); // without flush: what the prompt shows for certain
      for (token_id token : prompt)
        shown += before.push(token);
      text_stream stream(*given.subject, true, prompt);
      std::string answer;
      for (std::size_t next = cut; next < all.size(); ++next)
        answer += stream.push(all[next]);
      answer += stream.flush();
      BOOST_TEST(shown + answer == whole);
    }
  }
}

BOOST_AUTO_TEST_CASE(C01_both_spellings_of_merges_are_one_tokenizer) {
  fixture pairs("gpt2_pairs"), strings("gpt2_strings");
  BOOST_TEST(pairs.expected == strings.expected);
  BOOST_TEST((pairs.subject->digest() == strings.subject->digest()));
  fixture other("gpt2_prefix_space");
  BOOST_TEST((pairs.subject->digest() != other.subject->digest()));
}

BOOST_AUTO_TEST_CASE(names_and_special_tokens_come_from_the_files) {
  auto llama3 = open(golden / "llama3");
  BOOST_TEST((llama3->bos() == llama3->id_of("<|begin_of_text|>")));
  BOOST_TEST((llama3->eos() == llama3->id_of("<|eot_id|>")));
  BOOST_TEST(llama3->bos().has_value());
  BOOST_TEST(llama3->is_special(*llama3->eos()));
  BOOST_TEST(!llama3->is_special(*llama3->id_of("<tool>")));
  BOOST_TEST(llama3->piece(*llama3->id_of("\xC4\xA0the")) == "\xC4\xA0the");
  BOOST_TEST(llama3->piece(static_cast<token_id>(llama3->vocabulary_size())).empty());
  auto qwen = open(golden / "qwen2");
  BOOST_TEST(!qwen->bos());
  BOOST_TEST((qwen->eos() == qwen->id_of("<|im_end|>")));
  auto bare = open(golden / "sentencepiece_bpe"); // no config: as the model says
  BOOST_TEST((bare->bos() == bare->id_of("<s>")));
  BOOST_TEST((bare->eos() == bare->id_of("</s>")));
  auto ids = bare->encode("Hi<s> there</s>", false);
  BOOST_TEST(std::count(ids->begin(), ids->end(), *bare->bos()) == 1);
  BOOST_TEST(ids->back() == *bare->eos());
}
