#include "config/nearest.hpp"

#include <boost/test/unit_test.hpp>

#include <array>

using namespace troupe;

namespace {

constexpr std::array<std::string_view, 6> keys{
  "context", "dtype", "path", "tokenizer", "threads", "max_prompt_tokens"};

} // namespace

BOOST_AUTO_TEST_CASE(a_misspelling_finds_its_key) {
  BOOST_TEST(nearest("contxt", keys) == "context");
  BOOST_TEST(nearest("dytpe", keys) == "dtype");
  BOOST_TEST(nearest("thread", keys) == "threads");
  BOOST_TEST(nearest("tokeniser", keys) == "tokenizer");
  BOOST_TEST(nearest("prompt_tokens", keys) == "max_prompt_tokens");
  BOOST_TEST(nearest("path", keys) == "path");
}

BOOST_AUTO_TEST_CASE(another_word_finds_nothing) {
  BOOST_TEST(nearest("bandwidth", keys) == "");
  BOOST_TEST(nearest("", keys) == "");
  BOOST_TEST(nearest("x", keys) == "");
  BOOST_TEST(nearest("context", {}) == "");
}

BOOST_AUTO_TEST_CASE(a_word_of_any_length_is_fine) {
  BOOST_TEST(nearest(std::string(1'000'000, 'c'), keys) == "");
}
