#pragma once
// Faults of a process: read from the settings or ordered while the cluster serves, and kept where
// the thread that they meet finds them.

#include "actors/messages/faults.hpp"
#include "compute/faults/fault_injector.hpp"
#include "config/fault.hpp"
#include "transport/transport.hpp"

#include <filesystem>
#include <memory>

namespace troupe::actors {

/// The faults of the settings, whose phases are those of ranks and conductor too. Errors:
/// invalid_config with carets.
result<std::vector<fault>> faults_of(const cluster_settings& settings);

fault_order to_order(const fault_settings& wanted);

/// Errors: invalid_config that names the option.
result<fault> read_order(const cluster_settings& settings, const fault_order& order);

/// "at rank 1 of node b, at once": for the receipt of an order that read_order accepted.
std::string describe_order(const cluster_settings& settings, const fault& ordered);

/// The faults of one rank, or of the conductor. Made with it; its thread opens and uses it.
class fault_desk {
public:
  /// `book` is the file of the trace, `run` the number of the cluster's run.
  fault_desk(std::uint32_t self, std::filesystem::path book, std::uint64_t run);

  /// nullptr where no fault was ever asked for. Owner's thread.
  compute::fault_injector* injector() const noexcept {
    return injector_.load(std::memory_order_relaxed);
  }

  /// Takes those of its own place. Owner's thread, or before it starts.
  void add(const std::vector<fault>& faults);

  /// Wraps the wires where there are faults. Owner's thread.
  std::unique_ptr<transport::transport> wrap(std::unique_ptr<transport::transport> wires) const;

  /// Any thread: lets a thread that stands still go on, since the process wants to end.
  void release() const noexcept;

  /// Any thread: faults that happened.
  std::uint64_t made() const noexcept;

private:
  const std::uint32_t self_;
  const std::filesystem::path book_;
  const std::uint64_t run_;
  std::unique_ptr<compute::fault_injector> owner_;
  std::atomic<compute::fault_injector*> injector_{nullptr};
};

/// The trace of a node's faults: "<name>.faults" in its run folder.
std::filesystem::path fault_book(const std::filesystem::path& run_folder, const std::string& node);

} // namespace troupe::actors
