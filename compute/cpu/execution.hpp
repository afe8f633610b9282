#pragma once
// What an operation runs on: the team and its working memory.

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

  std::atomic<std::uint64_t>* pulse; ///< See device_options.

  explicit execution(std::unique_ptr<thread_team> threads,
                     std::atomic<std::uint64_t>* shown = nullptr)
    : team(std::move(threads)), each(team->size()), pulse(shown) {}

  /// Inside of run, now and then: shows that the work gets on. Only the leader does.
  void beat(std::size_t thread) const noexcept {
    if (thread == 0 && pulse != nullptr)
      pulse->store(pulse->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// f(thread, threads) on the whole team, or by the leader alone as f(0, 1) where `elements` of
  /// work are not worth the meeting. What is computed must not depend on which of the two it is.
  template <class F>
  void run(std::size_t elements, const F& f) {
    constexpr std::size_t worth_meeting = 16384;
    beat(0);
    const auto threads = team->size();
    if (threads == 1 || elements < worth_meeting)
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
