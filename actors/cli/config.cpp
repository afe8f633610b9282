#include "actors/cli/config.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

int run_config_command(const config_options& options) {
  const auto settings = read_cluster(options.cluster, security_files::ignore);
  if (!settings)
    return fail(settings.error());
  const auto rows = describe_settings(*settings);
  fmt::print("{}", options.json ? config_json(rows) + "\n" : config_text(rows));
  return 0;
}

std::string config_text(std::span<const setting_row> rows) {
  constexpr std::size_t widest_value = 24; // a path must not push every reason out of sight
  std::size_t keys = 0;
  std::size_t values = 0;
  for (const auto& row : rows) {
    keys = std::max(keys, row.key.size());
    if (row.value.size() <= widest_value)
      values = std::max(values, row.value.size());
  }
  std::string text;
  for (const auto& row : rows)
    text += fmt::format(
      "{:<{}} = {:<{}}  # {} - {}\n", row.key, keys, row.value, values, row.origin, row.reason);
  return text;
}

} // namespace troupe::cli
