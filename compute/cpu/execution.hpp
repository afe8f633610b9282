#pragma once
// What an operation runs on: the team and its working memory.

#include "compute/cpu/dealer.hpp"
#include "compute/cpu/memory.hpp"
#include "compute/cpu/thread_team.hpp"
#include "config/topology.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::compute::cpu {

struct execution {
  std::unique_ptr<thread_team> team;
  scratch shared;            ///< Filled together by all threads.
  std::vector<scratch> each; ///< One a thread.
  arena weights;             ///< Where packed weights lie.
  dealer work;               ///< Of the operation that runs.

  std::atomic<std::uint64_t>* pulse; ///< See device_options.

  explicit execution(std::unique_ptr<thread_team> threads,
                     std::atomic<std::uint64_t>* shown = nullptr)
    : team(std::move(threads)), each(team->size()), work(team->size()), pulse(shown) {}

  /// Now and then, by any thread: shows that the work gets on.
  void beat() const noexcept {
    if (pulse != nullptr)
      pulse->fetch_add(1, std::memory_order_relaxed);
  }

  /// How many threads so many `elements` of work are worth: all, or only the leader.
  std::size_t threads_for(std::size_t elements) const noexcept {
    constexpr std::size_t worth_meeting = 16384;
    return elements < worth_meeting ? 1 : team->size();
  }

  /// f(thread, threads) on the whole team, or by the leader alone as f(0, 1) where `elements` of
  /// work are not worth the meeting. What is computed must not depend on which of the two it is.
  template <class F>
  void run(std::size_t elements, const F& f) {
    beat();
    const auto threads = threads_for(elements);
    if (threads == 1)
      f(std::size_t{0}, std::size_t{1});
    else
      team->run([&](std::size_t thread) { f(thread, threads); });
  }

  /// Inside of run.
  void barrier(std::size_t threads) {
    if (threads > 1)
      team->barrier();
  }
};

} // namespace troupe::compute::cpu
