#pragma once
// The book of what went wrong on purpose: one line a fault, in <node>.faults of the run folder. It
// is written before the fault happens, so that a process that dies of it finds in its next life
// that it has happened.

#include "config/fault.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::compute {

/// Several owners may write to one file, from any thread and process: a line is one write.
class fault_trace {
public:
  /// Begins a new book unless the one at `file` is of the same run (a random number that all nodes
  /// of a cluster share until its head ends). An empty path keeps no book.
  fault_trace(std::filesystem::path file, std::uint64_t run);

  /// How often this fault has happened at this spot.
  std::uint64_t count(const fault& what, const fault_spot& where) const;

  /// Adds "fault[0] kill at rank 1: <when>". What cannot be written is said in the log.
  void add(const fault& what, const fault_spot& where, const std::string& when) const;

private:
  void write(const std::string& line, bool anew) const;

  std::filesystem::path file_;
};

} // namespace troupe::compute
