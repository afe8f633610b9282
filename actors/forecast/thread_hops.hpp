#pragma once
// How long a word takes from one thread of this host to another, and a sum of two of them.

#include "actors/forecast/stage_cost.hpp"
#include "config/result.hpp"

namespace troupe::actors {

struct thread_hops {
  double awake_s = 0;  ///< To a thread that spins on it.
  double asleep_s = 0; ///< To a thread that sleeps in the kernel until it comes.
  link_speed sums;     ///< Of two members through shared memory.
};

/// Takes some tens of milliseconds. Errors: no thread, no shared memory, no event descriptor.
result<thread_hops> measure_hops();

} // namespace troupe::actors
