#pragma once
// Memory of the CPU device: large regions for weights and attention state, and scratch.

#include "compute/buffer.hpp"

#include <cstddef>

namespace troupe::compute::cpu {

/// A region of zeros from the system, touched only where it is used: the thread that first writes a
/// page decides which memory node it lies on. Regions from large_region on ask for large pages (2
/// MiB) throughout, the last one begun included: with small ones a walk through memory is held up
/// by address translation, and lines that lie at scattered addresses push each other out of the
/// second-level cache. Measured: 0.9 of the peak instead of 0.7 for a product of many rows.
/// `purpose` is named in the error (out_of_memory).
result<buffer> map_memory(std::size_t bytes, const char* purpose);

/// Bytes from which on a region is worth a large page.
inline constexpr std::size_t large_region = std::size_t{256} << 10;

/// Hands out parts of large regions, for weights: each matrix alone would leave its last large page
/// half used, or do without large pages. A region goes when the last part of it has gone.
class arena {
public:
  /// Aligned to a cache line, zeros. Error: out_of_memory, with `purpose`.
  result<buffer> take(std::size_t bytes, const char* purpose);

private:
  buffer region_;
  std::size_t used_ = 0;
};

/// Working memory of one thread that grows to the largest use and is kept. Contents are lost
/// between two calls of floats().
class scratch {
public:
  /// At least `count` floats, aligned to a cache line.
  float* floats(std::size_t count);

private:
  buffer region_;
};

} // namespace troupe::compute::cpu
