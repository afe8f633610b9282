#pragma once
// Which processes can share memory.

#include <string>
#include <string_view>

namespace troupe::transport {

/// Equal for processes that can open each other's shared_segment: one boot of one kernel, one PID
/// and user namespace, one user. Differs between containers of one host; network namespaces do not
/// count, since memory is shared across them. Fields are readable: "boot:… pid:… user:… uid:…".
std::string host_identity();

/// Equal for processes that can and may: host_identity() where `transports` (in the words of
/// UCX_TLS; empty = all) names a way through shared memory, otherwise a value of this process.
std::string memory_domain(std::string_view transports);

} // namespace troupe::transport
