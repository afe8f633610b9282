#pragma once

#include "actors/cli/command.hpp"

#include <span>
#include <string>

namespace troupe::cli {

/// `troupe config`: the effective settings, where each came from and why it is there.
struct config_options {
  cluster_options cluster;
  bool json = false;
};

int run_config_command(const config_options& options);

/// A line a setting, as it would stand in a cluster file: key = value  # origin - reason. Keys and
/// values are aligned as long as that leaves lines readable.
std::string config_text(std::span<const setting_row> rows);

/// A JSON array of objects with key, value (as TOML), origin and reason.
std::string config_json(std::span<const setting_row> rows);

} // namespace troupe::cli
