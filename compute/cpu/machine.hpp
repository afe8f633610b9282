#pragma once
// What this machine's processor can do at most: the yardstick for the kernels. Decoding is bound by
// the read bandwidth, prefill by the multiply-adds.

#include "compute/device.hpp"

#include <chrono>
#include <cstddef>

namespace troupe::compute::cpu {

struct machine_figures {
  std::size_t threads = 0;
  std::size_t read_region = 0;        ///< Bytes that were read in turn; well above any cache.
  double read_bytes_per_second = 0.0; ///< All threads together, best pass.
  double flops_per_second = 0.0;      ///< f32, two a multiply-add; all threads, best pass.
};

struct measure_options {
  std::chrono::milliseconds duration{1000}; ///< For each of the two figures.
  std::size_t read_region = std::size_t{1} << 30;
};

/// Measures on `threads` as a device with these options would have them. Takes read_region bytes of
/// memory for the while. Other programs on the cores lower the figures: the best pass counts.
/// Errors: out_of_memory, and those of starting the threads.
result<machine_figures> measure_machine(const device_options& threads,
                                        const measure_options& options);

} // namespace troupe::compute::cpu
