#pragma once
// How much memory a process on this host may still take.

#include <cstddef>

namespace troupe::actors {

/// Bytes that are available on this host, or that this process' limit on its address space or the
/// limits of its control groups leave, whichever is least; 0 when the system does not say.
std::size_t available_memory_bytes();

} // namespace troupe::actors
