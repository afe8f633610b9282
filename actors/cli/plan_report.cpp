#include "actors/cli/plan_report.hpp"

#include "actors/cli/command.hpp"
#include "actors/host/host_memory.hpp"
#include "actors/host/host_network.hpp"
#include "actors/node/demo_model.hpp"
#include "actors/node/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

namespace {

/// The model where a node of this host has it; on a desk without nodes, where the first one has it.
result<std::filesystem::path> model_folder(const cluster_settings& settings) {
  for (const auto& node : settings.nodes)
    if (actors::belongs_to_this_host(node.advertise))
      return actors::model_folder_of(settings, node);
  return actors::model_folder_of(settings, settings.nodes.front());
}

/// What the first of the nodes of this host that lacks something lacks; other hosts have folders of
/// their own (row B29).
result<std::string> missing_here(const cluster_settings& settings,
                                 const actors::cluster_plan& plan,
                                 std::shared_ptr<const compute::model> model) {
  for (const auto index : actors::nodes_of_this_host(settings)) {
    const auto& node = settings.nodes[index];
    const auto folder = actors::model_folder_of(settings, node);
    if (!folder)
      return folder.error();
    if (model->folder() != *folder) {
      auto own = compute::model::open(*folder);
      if (!own)
        return with_context(fmt::format("node '{}'", node.name), own.error());
      model = *std::move(own);
    }
    if (const auto found = actors::find_tensors(settings, plan, *model, index); !found)
      return found.error().what;
  }
  return std::string{};
}

} // namespace

result<plan_report> make_plan_report(const cluster_settings& settings) {
  auto folder = model_folder(settings);
  if (!folder)
    return folder.error();
  auto model = compute::model::open(*folder);
  if (!model)
    return model.error();
  auto plan = actors::lay_out(settings, **model);
  if (!plan)
    return plan.error();
  plan_report report;
  report.cluster = settings.cluster.name;
  report.file = settings.file;
  report.model_folder = folder->string();
  report.model_digest = compute::to_string((*model)->description_digest());
  report.shape = (*model)->shape();
  report.wire = settings.parallel.wire_dtype;
  report.found_bytes = actors::available_memory_bytes();
  for (const auto& node : settings.nodes)
    report.nodes.push_back({node.name, node.advertise, node.ranks});
  if (auto fits = actors::fit_state(settings, *plan, report.found_bytes); !fits)
    report.refusal = fits.error().what;
  auto missing = missing_here(settings, *plan, *model);
  if (!missing)
    return missing.error();
  report.missing = *std::move(missing);
  report.plan = *std::move(plan);
  return report;
}

bool plan_report::all_here() const {
  return std::all_of(
    plan.nodes.begin(), plan.nodes.end(), [](const auto& node) { return node.is_here; });
}

std::string range_text(const range& units) {
  if (units.empty())
    return "-";
  return units.size() == 1 ? fmt::format("{}", units.begin)
                           : fmt::format("{}-{}", units.begin, units.end - 1);
}

std::size_t boundary_bytes(const plan_report& report) {
  return report.plan.boundary_row_bytes * report.plan.sizes.tensor;
}

std::vector<std::string> plan_warnings(const plan_report& report) {
  std::size_t needed = 0;
  for (const auto& node : report.plan.nodes)
    if (node.is_here)
      needed += node.needed_bytes;
  if (report.found_bytes == 0 || needed <= report.found_bytes || !report.fits())
    return {};
  return {fmt::format("the nodes of this host need {}, but it has {} free now",
                      bytes_text(needed),
                      bytes_text(report.found_bytes))};
}

} // namespace troupe::cli
