#include "compute/tokenizer/stop_strings.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace troupe;
using namespace troupe::compute;

namespace {

stop_strings make(std::vector<std::string> stops) {
  auto made = stop_strings::make(std::move(stops));
  BOOST_REQUIRE(made);
  return std::move(*made);
}

/// Everything that is sent when the text comes in these chunks.
std::string sent(stop_strings watcher, const std::vector<std::string>& chunks) {
  std::string text;
  for (const auto& chunk : chunks)
    text += watcher.push(chunk).text;
  return text + watcher.flush();
}

/// What has to be sent, straight from the definition: up to the match that ends first, of those the
/// longest.
std::string expected(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops)
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0)
        longest = std::max(longest, stop.size());
    if (longest > 0)
      return text.substr(0, end - longest);
  }
  return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(D06_no_part_of_a_stop_string_and_nothing_after_it_is_sent) {
  for (std::vector<std::string> chunks : {std::vector<std::string>{"one ST", "OP two"},
                                          {"one S", "T", "OP", " two"},
                                          {"one ", "S", "T", "O", "P", " two"},
                                          {"one STOP two"}}) {
    auto watcher = make({"STOP"});
    std::string text;
    for (const auto& chunk : chunks) {
      text += watcher.push(chunk).text;
      BOOST_TEST(text.find('S') == std::string::npos);
    }
    BOOST_TEST(watcher.stopped());
    BOOST_TEST(watcher.flush() == "");
    BOOST_TEST(watcher.push("more").text == "");
    BOOST_TEST(watcher.push("more").stopped);
    BOOST_TEST(text == "one ");
  }
}

BOOST_AUTO_TEST_CASE(D06_the_matching_push_hands_out_what_came_before_the_match) {
  auto watcher = make({"\n\n", "END"});
  BOOST_TEST(watcher.push("a\n").text == "a");
  auto verdict = watcher.push("bEND\n\n");
  BOOST_TEST(verdict.text == "\nb");
  BOOST_TEST(verdict.stopped);
  BOOST_TEST(*watcher.matched() == 1u);
}

BOOST_AUTO_TEST_CASE(D06_overlapping_and_nested_stop_strings) {
  BOOST_TEST(sent(make({"bc", "abcd"}), {"xab", "cd"}) == "xa"); // "bc" ends first
  BOOST_TEST(sent(make({"c", "abc"}), {"xab", "c"}) == "x");     // both end here, the longer wins
  BOOST_TEST(sent(make({"aab"}), {"aa", "ab"}) == "a");          // the match starts late
  BOOST_TEST(sent(make({"abab!"}), {"ababab", "!"}) == "ab");
}

BOOST_AUTO_TEST_CASE(D07_a_stop_string_that_never_comes_loses_nothing) {
  std::string stop(40, 'q');
  auto watcher = make({stop});
  BOOST_TEST(watcher.push("plain text").text == "plain text"); // at once
  BOOST_TEST(watcher.push(std::string(39, 'q')).text == "");   // a true prefix is pending
  BOOST_TEST(watcher.push("x").text == std::string(39, 'q') + "x");
  BOOST_TEST(watcher.push("qq").text == "");
  BOOST_TEST(watcher.flush() == "qq");
  BOOST_TEST(!watcher.stopped());
}

BOOST_AUTO_TEST_CASE(D07_only_the_longest_true_prefix_is_held_back) {
  auto watcher = make({"</answer>", "<|end|>"});
  BOOST_TEST(watcher.push("a < b").text == "a < b");
  BOOST_TEST(watcher.push(" <").text == " ");
  BOOST_TEST(watcher.push("/ans").text == "");
  BOOST_TEST(watcher.push("<|").text == "</ans");
  BOOST_TEST(watcher.push("e").text == "");
  BOOST_TEST(watcher.push("!").text == "<|e!");
}

BOOST_AUTO_TEST_CASE(D06_D07_the_cut_into_chunks_makes_no_difference) {
  std::mt19937 random(7);
  auto word = [&](std::size_t longest) {
    std::string made(1 + random() % longest, 'a');
    for (char& letter : made)
      letter = "ab"[random() % 2];
    return made;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t count = 1 + random() % 3; count > 0; --count)
      stops.push_back(word(6));
    std::string text = word(30);
    std::vector<std::string> chunks;
    for (std::size_t at = 0; at < text.size();) {
      chunks.push_back(text.substr(at, 1 + random() % 5));
      at += chunks.back().size();
    }
    BOOST_TEST(sent(make(stops), chunks) == expected(stops, text));
  }
}

BOOST_AUTO_TEST_CASE(without_stop_strings_all_text_passes_at_once) {
  auto watcher = make({});
  BOOST_TEST(watcher.push("text").text == "text");
  BOOST_TEST(watcher.flush() == "");
}

BOOST_AUTO_TEST_CASE(an_empty_stop_string_is_refused_by_its_place) {
  auto made = stop_strings::make({"a", ""});
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::invalid_argument));
  BOOST_TEST(made.error().what.find("2 of 2") != std::string::npos);
}
