#pragma once

#include "actors/cli/command.hpp"

#include <filesystem>
#include <string>

namespace troupe::cli {

/// `troupe node`: one node in the foreground.
struct node_command_options {
  cluster_options cluster;
  std::string name;
  std::filesystem::path run_folder; ///< Empty: the cluster file's.
};

int run_node_command(const node_command_options& options);

} // namespace troupe::cli
