#pragma once
// A device on which memory is refused and activations are spoilt where its injector says so.

#include "compute/device.hpp"
#include "compute/faults/fault_injector.hpp"

namespace troupe::compute {

/// Wraps `inner`; everything else is passed on. `faults` outlives it.
std::unique_ptr<device> make_faulty_device(std::unique_ptr<device> inner, fault_injector& faults);

} // namespace troupe::compute
