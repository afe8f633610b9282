#pragma once
// Where UCX makes its segments of shared memory. It removes each one's name at once, but a process
// that is killed in between leaves it, megabytes each, until the host restarts: UCX gives them
// names that tell nobody whose they are. So each process has a folder of its own in /dev/shm, which
// it holds locked; the next one that starts removes those that nobody holds.

#include <filesystem>

namespace troupe::transport {

/// This process's folder, made at the first call and removed at its end. Empty where none can be
/// made: UCX then uses /dev/shm itself. Any thread.
const std::filesystem::path& segment_folder();

/// Removes what processes of this user left that are gone; what cannot be removed stays.
void sweep_segment_folders();

} // namespace troupe::transport
