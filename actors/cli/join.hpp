#pragma once
// `troupe join`: a node that is not in the cluster file.

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::cli {

struct join_options {
  std::string head; ///< "10.0.0.1:7600".
  std::string name;
  std::filesystem::path model;
  std::vector<std::string> overrides; ///< What follows --set.
};

int run_join_command(const join_options& options);

} // namespace troupe::cli
