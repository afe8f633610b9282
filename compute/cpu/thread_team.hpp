#pragma once
// The threads of one rank's arithmetic: the rank's own thread leads, the others follow it from one
// parallel region to the next.

#include "compute/device.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace troupe::compute::cpu {

/// A leader (the thread that calls run) and size() - 1 followers. Waiting threads first spin for
/// some tens of microseconds, yielding the core in between, then sleep in the kernel. A yield that
/// took long shows that the core is wanted by others: then the thread sleeps at once for a while,
/// so that ranks which share cores do not starve each other. With more threads than cores nobody
/// spins.
///
/// Waits inside a team have no deadline: a member only ever waits for arithmetic of its own
/// process.
class thread_team {
public:
  /// Starts the followers and pins all threads where cores are given. Errors: threads of 0, fewer
  /// cores than threads, a core that this process may not use, no more threads from the system.
  static result<std::unique_ptr<thread_team>> start(const device_options& options);

  ~thread_team();
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;

  std::size_t size() const noexcept { return followers_.size() + 1; }

  /// f(thread) on every thread of the team, 0 ... size() - 1, the leader being 0. Returns when all
  /// are through. f must not throw and must not call run.
  template <class F>
  void run(const F& f) {
    run_erased(
      [](const void* callable, std::size_t thread) { (*static_cast<const F*>(callable))(thread); },
      &f);
  }

  /// Inside of run: returns when every thread of the team has called it.
  void barrier();

  /// Parallel regions so far, and how often a waiting thread gave up spinning and slept.
  std::uint64_t regions() const noexcept { return regions_; }

  std::uint64_t sleeps() const noexcept { return sleeps_.load(std::memory_order_relaxed); }

private:
  using word = std::atomic<std::uint32_t>;
  using erased_call = void (*)(const void* callable, std::size_t thread);

  explicit thread_team(std::chrono::nanoseconds spin) : spin_(spin) {}

  void run_erased(erased_call call, const void* callable);
  void follow(std::size_t thread);
  void wait_while(const word& value, std::uint32_t old);
  bool spin_while(const word& value, std::uint32_t old) const;

  const std::chrono::nanoseconds spin_;
  erased_call call_ = nullptr;
  const void* callable_ = nullptr;
  bool stopping_ = false;
  std::uint64_t regions_ = 0;
  std::atomic<std::uint64_t> sleeps_ = 0;
  alignas(64) word region_ = 0;  ///< Rises by one for each parallel region: followers wait on it.
  alignas(64) word running_ = 0; ///< Followers that have not finished the region.
  alignas(64) word arrived_ = 0; ///< Threads at the current barrier.
  alignas(64) word passed_ = 0;  ///< Barriers passed.
  std::vector<std::thread> followers_;
};

} // namespace troupe::compute::cpu
