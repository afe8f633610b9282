#include "config/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace troupe {

namespace {

fault_mistake not_a_moment(std::string_view text) {
  return {fmt::format("\"{}\" is no moment", text),
          "\"step 20\", \"step 20 layer 3\", \"message 7\", \"call 3\", \"phase leaving\", "
          "\"phase joining 2\", \"load\" or \"load 50\" would work"};
}

fault_mistake counts_from_one(std::string_view text) {
  return {fmt::format("\"{}\" never comes: {} are counted from 1",
                      text,
                      text.starts_with("phase") ? "times" : "they"),
          "1 is the first"};
}

moment_or_mistake read_phase(std::string_view text, const std::vector<std::string_view>& words) {
  if (words.size() < 2 || words.size() > 3)
    return not_a_moment(text);
  fault_moment made;
  made.event = fault_event::phase;
  made.phase = words[1];
  if (words.size() == 3) {
    const auto count = number_of(words[2]);
    if (!count)
      return not_a_moment(text);
    if (*count == 0)
      return counts_from_one(text);
    made.count = *count;
  }
  return made;
}

moment_or_mistake read_load(std::string_view text, const std::vector<std::string_view>& words) {
  fault_moment made;
  made.event = fault_event::load;
  made.count = 0;
  if (words.size() == 1)
    return made;
  const auto percent = number_of(words[1]);
  if (!percent || words.size() > 2)
    return not_a_moment(text);
  if (*percent > 100)
    return fault_mistake{fmt::format("a load is never {} % done", *percent), "0 to 100"};
  made.count = *percent;
  return made;
}

} // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos)
      break;
    text.remove_prefix(begin);
    const auto end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<std::uint64_t> number_of(std::string_view word) {
  std::uint64_t value = 0;
  const auto* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, value);
  constexpr std::uint64_t most = 1ull << 40;
  return parsed.ec == std::errc{} && parsed.ptr == end && value <= most ? std::optional{value}
                                                                        : std::nullopt;
}

moment_or_mistake read_moment(std::string_view text) {
  const auto words = words_of(text);
  if (words.empty())
    return not_a_moment(text);
  if (words[0] == "phase")
    return read_phase(text, words);
  if (words[0] == "load")
    return read_load(text, words);
  fault_moment made;
  if (words[0] == "message")
    made.event = fault_event::message;
  else if (words[0] == "call")
    made.event = fault_event::call;
  else if (words[0] != "step")
    return not_a_moment(text);
  const auto count = words.size() > 1 ? number_of(words[1]) : std::nullopt;
  if (!count)
    return not_a_moment(text);
  if (*count == 0)
    return counts_from_one(text);
  made.count = *count;
  if (words.size() == 2)
    return made;
  if (words.size() != 4 || words[2] != "layer" || made.event != fault_event::step)
    return not_a_moment(text);
  made.layer = number_of(words[3]);
  if (!made.layer)
    return not_a_moment(text);
  return made;
}

} // namespace troupe
