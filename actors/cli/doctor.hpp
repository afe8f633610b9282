#pragma once
// `troupe doctor`: what would keep this host from its part in a cluster, before anything starts.

#include "actors/cli/command.hpp"

#include <string>
#include <string_view>

namespace troupe::cli {

int run_doctor_command(const cluster_options& options);

/// What was looked at, a line each, printed as it is found.
class findings {
public:
  void ok(std::string_view area, const std::string& found);

  /// Works, but not well; `remedy` says what to do.
  void warn(std::string_view area, const std::string& found, const std::string& remedy);

  /// Does not work.
  void fail(std::string_view area, const std::string& found, const std::string& remedy);

  bool healthy() const noexcept { return failures_ == 0; }

  std::size_t warnings() const noexcept { return warnings_; }

  std::size_t failures() const noexcept { return failures_; }

private:
  std::size_t warnings_ = 0;
  std::size_t failures_ = 0;
};

/// Packages, shared memory, limits, cores: the host by itself.
void examine_host(const cluster_settings& settings, findings& found);

/// UCX: version, transports and devices, and those that the nodes of this host ask for.
void examine_wires(const cluster_settings& settings, findings& found);

/// Addresses, ports, secrets, the other hosts, and the cluster itself if it runs.
void examine_network(const cluster_settings& settings, findings& found);

/// The model's files and the memory that the nodes of this host need.
void examine_model(const cluster_settings& settings, findings& found);

} // namespace troupe::cli
