#pragma once
// What processes hold, and what they leave behind when they are gone.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include <sys/types.h>

namespace troupe::tests {

struct holdings {
  std::uint64_t memory_kb = 0; ///< Resident.
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};

/// Of a process that lives.
holdings held_by(pid_t process);

/// Processes with this text in their command lines, but for this one.
std::set<pid_t> processes_with(const std::string& text);

/// What nobody holds any more: folders of segments in /dev/shm that none has locked, and segments
/// of System V's whose makers, among these processes, are gone and to which nobody is attached.
std::string shared_memory_left_by(const std::set<pid_t>& processes);

/// Files and folders below a folder.
std::size_t entries_below(const std::filesystem::path& folder);

} // namespace troupe::tests
