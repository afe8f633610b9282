#pragma once
// Which processes can share memory.

#include <string>

namespace troupe::transport {

/// Equal for processes that can open each other's shared_segment: one boot of one kernel, one PID
/// and user namespace, one user. Differs between containers of one host. Fields are readable:
/// "boot:… pid:… user:… uid:…".
std::string host_identity();

} // namespace troupe::transport
