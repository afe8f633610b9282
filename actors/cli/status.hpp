#pragma once

#include "actors/cli/command.hpp"

namespace troupe::cli {

/// `troupe status`
struct status_options {
  cluster_options cluster;
  bool json = false;
  bool watch = false;
};

int run_status_command(const status_options& options);

} // namespace troupe::cli
