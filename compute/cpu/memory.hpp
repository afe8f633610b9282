#pragma once
// Memory of the CPU device: large regions for weights and attention state, and scratch.

#include "compute/buffer.hpp"

#include <cstddef>

namespace troupe::compute::cpu {

/// A region of zeros from the system, touched only where it is used: the thread that first writes a
/// page decides which memory node it lies on. Large pages are asked for where a page of them fits.
/// `purpose` is named in the error (out_of_memory).
result<buffer> map_memory(std::size_t bytes, const char* purpose);

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
