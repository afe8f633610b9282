#pragma once
// The device on CPUs: kernels for several instruction sets in one binary, chosen at run time, on a
// team of threads that the rank's thread leads.

#include "compute/device.hpp"

namespace troupe::compute::cpu {

/// Errors: those of starting and pinning the threads.
result<std::unique_ptr<device>> make_cpu_device(const device_options& options);

} // namespace troupe::compute::cpu
