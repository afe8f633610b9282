#pragma once
// `troupe inject`: one more fault in a cluster that runs.

#include "actors/cli/command.hpp"

namespace troupe::cli {

struct inject_options {
  cluster_options cluster;
  fault_settings wanted;
};

int run_inject_command(const inject_options& options);

} // namespace troupe::cli
