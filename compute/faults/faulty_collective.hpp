#pragma once
// A group whose member here calls another length or another operation than the others, or fails
// alone, where its injector says so.

#include "compute/collective.hpp"
#include "compute/faults/fault_injector.hpp"

#include <memory>

namespace troupe::compute {

/// Wraps `inner`; both outlive it.
std::unique_ptr<collective> make_faulty_collective(collective& inner, fault_injector& faults);

} // namespace troupe::compute
