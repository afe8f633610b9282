#include "compute/cpu/thread_team.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <hwy/cache_control.h>

#include <pthread.h>
#include <sched.h>

#include <system_error>

namespace troupe::compute::cpu {

namespace {

using steady = std::chrono::steady_clock;

// Longer than the gaps between the operations of a step, shorter than anybody would miss.
constexpr auto spin_budget = std::chrono::microseconds{50};
// A yield that hands the core to somebody else returns after a scheduler tick or so; one that finds
// nobody takes well below a microsecond.
constexpr auto long_yield = std::chrono::microseconds{20};
// Waits without spinning after the core was found crowded.
constexpr unsigned crowded_waits = 64;
constexpr int pauses_between_yields = 32;

thread_local unsigned waits_without_spin = 0;

std::vector<unsigned> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<unsigned> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return cores;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set))
      cores.push_back(core);
  return cores;
}

bool pin(pthread_t thread, unsigned core) {
  if (core >= CPU_SETSIZE)
    return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(thread, sizeof(set), &set) == 0;
}

result<void> check_options(const device_options& options) {
  if (options.threads == 0)
    return error{errc::invalid_argument, "a device needs threads of 1 or more, found 0"};
  if (!options.cores.empty() && options.cores.size() < options.threads)
    return error{errc::invalid_argument,
                 fmt::format("{} threads are to be pinned, but only {} cores are given: give one "
                             "core a thread, or none",
                             options.threads,
                             options.cores.size())};
  return {};
}

} // namespace

result<std::unique_ptr<thread_team>> thread_team::start(const device_options& options) {
  if (auto valid = check_options(options); !valid)
    return valid.error();
  const auto usable = usable_cores();
  const bool room = options.threads <= usable.size();
  auto team = std::unique_ptr<thread_team>(
    new thread_team(room ? std::chrono::nanoseconds(spin_budget) : std::chrono::nanoseconds(0)));
  try {
    for (std::size_t thread = 1; thread < options.threads; ++thread)
      team->followers_.emplace_back([raw = team.get(), thread] { raw->follow(thread); });
  } catch (const std::system_error& refused) {
    return error{
      errc::out_of_memory,
      fmt::format(
        "thread {} of {} could not be started: {}", team->size(), options.threads, refused.what())};
  }
  for (std::size_t thread = 0; thread < options.threads && !options.cores.empty(); ++thread) {
    const auto handle = thread == 0 ? pthread_self() : team->followers_[thread - 1].native_handle();
    if (!pin(handle, options.cores[thread]))
      return error{errc::invalid_argument,
                   fmt::format("thread {} cannot be pinned to core {}: this process may use {}",
                               thread,
                               options.cores[thread],
                               usable)};
  }
  return team;
}

thread_team::~thread_team() {
  stopping_ = true;
  region_.fetch_add(1, std::memory_order_release);
  region_.notify_all();
  for (auto& follower : followers_)
    follower.join();
}

void thread_team::run_erased(erased_call call, const void* callable) {
  ++regions_;
  if (followers_.empty()) {
    call(callable, 0);
    return;
  }
  call_ = call;
  callable_ = callable;
  running_.store(static_cast<std::uint32_t>(followers_.size()), std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  region_.notify_all();
  call(callable, 0);
  for (auto left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire))
    wait_while(running_, left);
}

void thread_team::follow(std::size_t thread) {
  for (std::uint32_t seen = 0;; ++seen) {
    wait_while(region_, seen);
    if (stopping_)
      return;
    call_(callable_, thread);
    if (running_.fetch_sub(1, std::memory_order_seq_cst) == 1)
      running_.notify_one();
  }
}

void thread_team::barrier() {
  if (followers_.empty())
    return;
  const auto passed = passed_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == followers_.size()) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.fetch_add(1, std::memory_order_seq_cst);
    passed_.notify_all();
    return;
  }
  wait_while(passed_, passed);
}

bool thread_team::spin_while(const word& value, std::uint32_t old) const {
  const auto end = steady::now() + spin_;
  while (true) {
    for (int pause = 0; pause < pauses_between_yields; ++pause) {
      if (value.load(std::memory_order_acquire) != old)
        return true;
      hwy::Pause();
    }
    const auto before = steady::now();
    if (before > end)
      return false;
    sched_yield();
    if (steady::now() - before > long_yield) {
      waits_without_spin = crowded_waits;
      return value.load(std::memory_order_acquire) != old;
    }
  }
}

void thread_team::wait_while(const word& value, std::uint32_t old) {
  if (waits_without_spin > 0)
    --waits_without_spin;
  else if (spin_.count() > 0 && spin_while(value, old))
    return;
  while (value.load(std::memory_order_acquire) == old) {
    sleeps_.fetch_add(1, std::memory_order_relaxed);
    value.wait(old, std::memory_order_acquire);
  }
}

} // namespace troupe::compute::cpu
