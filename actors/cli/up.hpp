#pragma once

#include "actors/cli/command.hpp"

#include <string>

namespace troupe::cli {

/// `troupe up`: the nodes of this host until Ctrl-C.
struct up_options {
  cluster_options cluster;
  bool show_logs = false;
  bool quiet = false;
};

int run_up_command(const up_options& options);

/// `troupe drain`: the cluster goes on without a node, which ends.
int run_drain_command(const cluster_options& options, const std::string& node);

/// As up, with serve.enabled = true.
int run_serve_command(up_options options);

/// `troupe stop`: ends a running cluster.
int run_stop_command(const cluster_options& options);

} // namespace troupe::cli
