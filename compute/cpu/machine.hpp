#pragma once
// What this machine's processor can do at most: the yardstick for the kernels. Decoding is bound by
// the read bandwidth, prefill by the multiply-adds.

#include "compute/cpu/execution.hpp"
#include "compute/device.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::compute::cpu {

/// Passes of about a millisecond, to be taken beside what they are compared with: on a machine that
/// others use as well, both then meet the same conditions.
class machine_probe {
public:
  /// On threads as a device with these options would have them. Takes `read_region` bytes of
  /// memory, which ought to be well above any cache. Errors: out_of_memory, those of starting the
  /// threads.
  static result<machine_probe> make(const device_options& threads, std::size_t read_region);

  /// Bytes per second of all threads together, reading the next part of the region.
  double read_rate();

  /// f32 operations per second of all threads together, two a fused multiply-add.
  double flop_rate();

  /// Operations per second of all threads together on whole numbers of 8 bits, two a multiply-add,
  /// by the fastest instructions that the processor has for that.
  double dot_rate();

  /// The clock of the passes, in seconds. With one thread it counts the time of that thread alone,
  /// so that waiting for a core which others use does not count; with several it is the wall's.
  double now() const;

  std::size_t threads() const noexcept { return on_->team->size(); }

private:
  machine_probe(std::unique_ptr<execution> on, buffer region)
    : on_(std::move(on)), region_(std::move(region)), answers_(on_->team->size() * 16, 1e-3f) {}

  std::unique_ptr<execution> on_;
  buffer region_;
  std::size_t next_ = 0;       ///< Where the next read begins, in floats.
  std::vector<float> answers_; ///< What the passes computed, a cache line a thread.
};

struct machine_figures {
  std::size_t threads = 0;
  double read_bytes_per_second = 0.0; ///< Median pass.
  double flops_per_second = 0.0;      ///< Median pass.
  double best_read_bytes_per_second = 0.0;
  double best_flops_per_second = 0.0;
};

/// Seconds that a change of one cache line takes from a core to another, each the mean of a
/// thousand times there and back. Empty where this process has only one core.
std::vector<double> measure_ping_pong(std::chrono::milliseconds duration);

struct measure_options {
  std::chrono::milliseconds duration{1000}; ///< For each of the two figures.
  std::size_t read_region = std::size_t{1} << 30;
};

/// A probe's passes for the time given.
result<machine_figures> measure_machine(const device_options& threads,
                                        const measure_options& options);

} // namespace troupe::compute::cpu
