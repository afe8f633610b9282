#include "compute/faults/standstill.hpp"

#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace troupe::compute {

void kill_process() {
  ::kill(::getpid(), SIGKILL);
  std::abort(); // The signal needs no return to user space; this is for the compiler.
}

void stop_process(std::optional<std::chrono::nanoseconds> time) {
  // Timers go on while a process is stopped, and a SIGCONT that is generated continues it.
  timer_t alarm{};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  const bool timed = time && ::timer_create(CLOCK_MONOTONIC, &event, &alarm) == 0;
  if (timed) {
    constexpr long second_ns = 1'000'000'000;
    itimerspec due{};
    due.it_value = {time->count() / second_ns, time->count() % second_ns};
    ::timer_settime(alarm, 0, &due, nullptr);
  }
  // To this thread, which takes it before it goes on, and the whole process stands still: sent to
  // the process, another thread may take it, later, and this one does its next work before.
  ::pthread_kill(::pthread_self(), SIGSTOP);
  if (timed)
    ::timer_delete(alarm);
}

void stand_still(std::optional<std::chrono::nanoseconds> time, const std::atomic<bool>& released) {
  constexpr std::chrono::milliseconds slice{1};
  const auto begin = std::chrono::steady_clock::now();
  while (!released.load(std::memory_order_relaxed)) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (time && passed >= *time)
      return;
    std::this_thread::sleep_for(time ? std::min<std::chrono::nanoseconds>(*time - passed, slice)
                                     : slice);
  }
}

} // namespace troupe::compute
