#pragma once
// `troupe trace`: the next steps of all ranks on one time base, in Chrome's trace format.

#include "actors/cli/command.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace troupe::cli {

struct trace_options {
  cluster_options cluster;
  std::uint32_t steps = 50;
  std::filesystem::path out = "trace.json"; ///< "-": standard output.
  std::optional<std::uint32_t> requests;    ///< Of our own; absent: where the cluster is idle.
  std::uint32_t wait_s = 10;                ///< For so many steps.
  bool quiet = false;
};

int run_trace_command(const trace_options& options);

} // namespace troupe::cli
