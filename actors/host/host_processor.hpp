#pragma once
// What computes on this host.

#include <string>

namespace troupe::actors {

/// As the system calls it, or "unknown".
std::string processor_name();

} // namespace troupe::actors
