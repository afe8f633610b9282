#pragma once
// What a fault does to a thread or its process: end it, stand it still, hold it up.

#include <atomic>
#include <chrono>
#include <optional>

namespace troupe::compute {

/// Ends this process at once, as the kernel would for lack of memory.
[[noreturn]] void kill_process();

/// Stops this process (SIGSTOP) until it is continued from outside, or for so long.
void stop_process(std::optional<std::chrono::nanoseconds> time);

/// Returns after `time`, or never where there is none; earlier once `released` is set.
void stand_still(std::optional<std::chrono::nanoseconds> time, const std::atomic<bool>& released);

} // namespace troupe::compute
