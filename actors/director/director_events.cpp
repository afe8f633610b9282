// What happened to the cluster and what was done about it, for people: the last events.

#include "actors/director/director_state.hpp"

#include <fmt/core.h>

#include <chrono>
#include <utility>

namespace troupe::actors {

namespace {

constexpr std::size_t most_events = 32;

std::uint64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

} // namespace

/// `done`: what was done about it, where that is known already.
void director_state::tell(std::string what, std::string done) {
  events_.push_back({unix_ms(), std::move(what), std::move(done)});
  if (events_.size() > most_events)
    events_.pop_front();
}

void director_state::tell_joined(const std::string& node) {
  if (!events_.empty() && events_.back().done.empty())
    came_back_ += fmt::format("{}node '{}' joined", came_back_.empty() ? "" : ", ", node);
}

/// Whatever was open is mended.
void director_state::tell_serving() {
  const auto now = unix_ms();
  for (auto& event : events_)
    if (event.done.empty())
      event.done = fmt::format("{}{}epoch {} serves with {} ranks, {:.1f} s later",
                               came_back_,
                               came_back_.empty() ? "" : "; ",
                               number(epoch_),
                               plan_.ranks.size(),
                               static_cast<double>(now - event.at_ms) / 1000);
  came_back_.clear();
  if (std::exchange(unrecovered_, false))
    ++recoveries_;
}

/// An epoch ends by a fault.
void director_state::lose_epoch(const std::string& reason, bool node_missing) {
  tell(reason);
  ++epochs_lost_;
  unrecovered_ = true;
  fence_epoch(reason, node_missing);
}

} // namespace troupe::actors
