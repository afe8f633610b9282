#pragma once

#include "actors/cli/command.hpp"

#include <filesystem>

namespace troupe::cli {

/// `troupe plan`: who would hold what, and how fast that would be, before anything is loaded.
struct plan_options {
  cluster_options cluster;
  bool json = false;
  std::filesystem::path svg;      ///< Where to draw it; empty: nowhere.
  bool calibrate = false;         ///< Measure this host first.
  std::filesystem::path scenario; ///< Simulate this instead; empty: plan the cluster.
};

int run_plan_command(const plan_options& options);

/// With a scenario.
int run_simulation(const plan_options& options);

} // namespace troupe::cli
