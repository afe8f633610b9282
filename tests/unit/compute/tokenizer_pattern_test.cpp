// The pieces of a tokenizer.json that the golden texts cannot single out.

#include "compute/tokenizer/added_tokens.hpp"
#include "compute/tokenizer/bpe.hpp"
#include "compute/tokenizer/split_pattern.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <thread>

using namespace troupe;
using namespace troupe::compute;

namespace {

std::string spelled(std::string_view oniguruma) {
  auto pattern = pcre2_spelling(oniguruma);
  return pattern ? *pattern : pattern.error().what;
}

/// The matched parts of the text, each in brackets.
std::string marked(std::string_view pattern, std::string_view text) {
  auto compiled = split_pattern::regex(pattern);
  BOOST_REQUIRE_MESSAGE(compiled, (compiled ? "" : compiled.error().what));
  auto parts = compiled->cut(text);
  BOOST_REQUIRE(parts);
  std::string shown;
  for (const auto& part : *parts) {
    std::string inside(text.substr(part.begin, part.end - part.begin));
    shown += part.matched ? "[" + inside + "]" : inside;
  }
  return shown;
}

bool refuses(std::string_view pattern) {
  auto compiled = split_pattern::regex(pattern);
  return !compiled && compiled.error().code == errc::invalid_model;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_pattern_is_rewritten_where_the_mongolian_separator_matters) {
  BOOST_TEST(spelled(R"(\s+(?!\S)|\p{L}+)") == R"([^\S\x{180E}]+(?![\S\x{180E}])|\p{L}+)");
  BOOST_TEST(spelled(R"([^\s\p{L}]+)") == R"((?:[^\s\p{L}]|\x{180E})+)");
  BOOST_TEST(spelled(R"([\s,]+)") == R"((?:(?!\x{180E})[\s,])+)");
  BOOST_TEST(spelled(R"([\s\S])") == R"([\s\S\x{180E}])");
  BOOST_TEST(spelled(R"([^\S]\\s\[\s])") == R"([^\S\x{180E}]\\s\[[^\S\x{180E}]])");
  BOOST_TEST(spelled(R"(\h[]a]x)") == R"([0-9a-fA-F][]a]x)");
}

BOOST_AUTO_TEST_CASE(the_mongolian_separator_is_no_space) {
  const char* text = "a\xE1\xA0\x8E b";
  BOOST_TEST(marked(R"(\s)", text) == "a\xE1\xA0\x8E[ ]b");
  BOOST_TEST(marked(R"(\S+)", text) == "[a\xE1\xA0\x8E] [b]");
  BOOST_TEST(marked(R"([^\sab]+)", text) == "a[\xE1\xA0\x8E] b");
  BOOST_TEST(marked(R"([\sa]+)", text) == "[a]\xE1\xA0\x8E[ ]b");
  BOOST_TEST(marked(R"([\s\S])", text) == "[a][\xE1\xA0\x8E][ ][b]");
}

BOOST_AUTO_TEST_CASE(empty_matches_cut_and_the_search_goes_on) {
  BOOST_TEST(marked("(?=[A-Z])", "aBcD") == "a[]Bc[]D");
  BOOST_TEST(marked("x*", "ax\xC3\xA9") == "[]a[x]\xC3\xA9[]");
  BOOST_TEST(marked("^", "a\nb") == "[]a\n[]b"); // lines, as in Ruby's syntax
}

BOOST_AUTO_TEST_CASE(patterns_of_another_meaning_or_none_are_refused) {
  for (auto pattern : {"[a&&b]", "[a[b]]", "[[:alpha:]]", "[a", "(", "[\\h]", "\\C", "(?<n", "*"})
    BOOST_TEST(refuses(pattern), pattern << " is refused");
  BOOST_TEST(!split_pattern::literal(""));
}

BOOST_AUTO_TEST_CASE(a_pattern_that_backtracks_without_end_is_an_error_in_time) {
  auto pattern = split_pattern::regex("(a|aa)+[bc]d");
  BOOST_REQUIRE(pattern);
  auto begin = std::chrono::steady_clock::now();
  auto parts = pattern->cut(std::string(5000, 'a') + "e d");
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)));
  BOOST_REQUIRE(!parts);
  BOOST_TEST((parts.error().code == errc::compute_error));
  BOOST_TEST(parts.error().what.find("(a|aa)+[bc]d") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_leftmost_added_token_wins_and_then_the_longest) {
  added_token_matcher matcher;
  for (auto [id, content] : {std::pair{1u, "ab"}, {2u, "abc"}, {3u, "bcd"}, {4u, "c"}})
    matcher.add({id, content});
  matcher.add({5, ""}); // found nowhere rather than everywhere
  auto found = [&](std::string_view text) {
    std::string shown;
    for (const auto& part : matcher.cut(text))
      shown += part.token ? "<" + std::to_string(*part.token) + ">" : std::string(part.text);
    return shown;
  };
  BOOST_TEST(found("xabcdx") == "x<2>dx");
  BOOST_TEST(found("abd") == "<1>d");
  BOOST_TEST(found("bcdc") == "<3><4>");
  BOOST_TEST(found("") == "");
  BOOST_TEST(found("aab") == "a<1>");
}

BOOST_AUTO_TEST_CASE(a_long_word_takes_its_time_by_its_length_and_not_by_the_square) {
  auto opened = tokenizer::open(TROUPE_SOURCE_DIR "/tests/golden/tokenizer/gpt2_pairs");
  BOOST_REQUIRE(opened);
  for (std::string word : {std::string(1 << 20, 'a'), std::string(1 << 20, ' ')}) {
    auto begin = std::chrono::steady_clock::now();
    auto ids = (*opened)->encode(word, false);
    BOOST_REQUIRE(ids);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)));
    BOOST_TEST(*(*opened)->decode(*ids, true) == word);
  }
}

BOOST_AUTO_TEST_CASE(threads_share_a_tokenizer) {
  for (const char* name : {"llama3", "llama2_old", "sentencepiece_bpe"}) {
    auto opened = tokenizer::open(std::string(TROUPE_SOURCE_DIR "/tests/golden/tokenizer/") + name);
    BOOST_REQUIRE(opened);
    const tokenizer& shared = **opened;
    std::vector<std::string> texts;
    for (int at = 0; at < 40; ++at)
      texts.push_back("In the beginning was word " + std::to_string(at * 7919)
                      + " \xF0\x9F\x8E\x89");
    std::vector<std::vector<token_id>> alone;
    for (const auto& text : texts)
      alone.push_back(*shared.encode(text, true));
    auto fresh = tokenizer::open(std::string(TROUPE_SOURCE_DIR "/tests/golden/tokenizer/") + name);
    std::vector<int> same(4);
    std::vector<std::thread> threads;
    for (auto& count : same)
      threads.emplace_back([&] {
        for (std::size_t at = 0; at < texts.size(); ++at)
          count += *(*fresh)->encode(texts[at], true) == alone[at];
      });
    for (auto& thread : threads)
      thread.join();
    for (int count : same)
      BOOST_TEST(count == 40);
  }
}
