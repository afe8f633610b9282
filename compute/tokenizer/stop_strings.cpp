#include "compute/tokenizer/stop_strings.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::compute {

stop_strings::automaton::automaton(std::string text)
  : pattern(std::move(text)), fallback(pattern.size() + 1, 0) {
  for (std::size_t at = 1, border = 0; at < pattern.size(); ++at) {
    while (border > 0 && pattern[at] != pattern[border])
      border = fallback[border];
    if (pattern[at] == pattern[border])
      ++border;
    fallback[at + 1] = border;
  }
}

bool stop_strings::automaton::step(char next) {
  while (length > 0 && pattern[length] != next)
    length = fallback[length];
  if (pattern[length] == next)
    ++length;
  return length == pattern.size();
}

result<stop_strings> stop_strings::make(std::vector<std::string> stops) {
  stop_strings made;
  for (std::size_t index = 0; index < stops.size(); ++index) {
    if (stops[index].empty())
      return error{errc::invalid_argument,
                   fmt::format("stop string {} of {} is empty; give at least one character",
                               index + 1,
                               stops.size())};
    made.automata_.emplace_back(std::move(stops[index]));
  }
  return made;
}

stop_strings::verdict stop_strings::push(std::string_view text) {
  if (stopped())
    return {{}, true};
  std::string seen = std::move(held_);
  held_.clear();
  for (char next : text) {
    seen += next;
    std::size_t longest = 0;
    for (std::size_t index = 0; index < automata_.size(); ++index) {
      auto& watcher = automata_[index];
      if (watcher.step(next) && watcher.pattern.size() > longest) {
        longest = watcher.pattern.size();
        matched_ = index;
      }
    }
    if (stopped()) {
      seen.resize(seen.size() - longest);
      return {std::move(seen), true};
    }
  }
  std::size_t pending = 0;
  for (const auto& watcher : automata_)
    pending = std::max(pending, watcher.length);
  held_ = seen.substr(seen.size() - pending);
  seen.resize(seen.size() - pending);
  return {std::move(seen), false};
}

std::string stop_strings::flush() {
  for (auto& watcher : automata_)
    watcher.length = 0;
  return std::exchange(held_, {});
}

} // namespace troupe::compute
