#pragma once
// Wires that lose, delay, repeat, exchange, shorten and damage frames, that are cut, and that
// refuse calls, where their injector says so.

#include "compute/faults/fault_injector.hpp"
#include "transport/transport.hpp"

namespace troupe::transport {

/// Wraps `inner`. `faults` outlives it.
std::unique_ptr<transport> make_faulty_transport(std::unique_ptr<transport> inner,
                                                 compute::fault_injector& faults);

} // namespace troupe::transport
