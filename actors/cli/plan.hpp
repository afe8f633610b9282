#pragma once

#include "actors/cli/command.hpp"

#include <filesystem>

namespace troupe::cli {

/// `troupe plan`: who would hold what, before anything is loaded.
struct plan_options {
  cluster_options cluster;
  bool json = false;
  std::filesystem::path svg; ///< Where to draw it; empty: nowhere.
};

int run_plan_command(const plan_options& options);

} // namespace troupe::cli
