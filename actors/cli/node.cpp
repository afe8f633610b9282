#include "actors/cli/node.hpp"

#include "actors/cli/plan_report.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/node/node.hpp"

#include <fmt/format.h>

namespace troupe::cli {

namespace {

error no_such_node(const cluster_settings& settings, const std::string& name) {
  std::string known;
  for (const auto& node : settings.nodes)
    known += (known.empty() ? "" : ", ") + node.name;
  return {errc::invalid_config,
          fmt::format("{} has no node {}; its nodes are {}", settings.file, name, known)};
}

} // namespace

int run_node_command(const node_command_options& options) {
  auto settings = read_cluster(options.cluster);
  if (!settings)
    return fail(settings.error());
  if (settings->find_node(options.name) == nullptr)
    return fail(no_such_node(*settings, options.name));
  const auto folder =
    options.run_folder.empty() ? actors::run_folder_for(*settings) : options.run_folder;
  log::start(settings->cluster.log_level, "node " + options.name);
  const auto draw_plan = [&]() -> std::string {
    const auto report = make_plan_report(*settings);
    return report ? plan_svg(*report) : std::string{};
  };
  if (auto ended = actors::run_node({*settings, options.name, folder, draw_plan}); !ended)
    return fail(ended.error());
  return 0;
}

} // namespace troupe::cli
