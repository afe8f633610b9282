// `troupe plan --simulate` (actors/cli/plan.hpp).
#include "actors/cli/forecast.hpp"
#include "actors/cli/plan.hpp"
#include "actors/cli/simulation_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

namespace {

/// Figures of this host, where a host of the scenario computes as it does: kept ones, or new ones.
result<std::optional<actors::calibration>>
figures_for(const scenario& wanted, const compute::model& model, bool measure) {
  const auto measured = std::any_of(
    wanted.hosts.begin(), wanted.hosts.end(), [](const auto& host) { return host.measured; });
  if (!measured)
    return std::optional<actors::calibration>();
  const auto hold = wanted.model.held_dtype.value_or(model.shape().stored);
  auto kept = figures_of_this_host(hold, measure);
  return kept && !*kept ? figures_of_this_host(hold, true) : kept;
}

} // namespace

int run_simulation(const plan_options& options) {
  const auto wanted = read_scenario(options.scenario);
  if (!wanted)
    return fail(wanted.error());
  const auto model = actors::model_of(*wanted);
  if (!model)
    return fail(model.error());
  const auto here = figures_for(*wanted, **model, options.calibrate);
  if (!here)
    return fail(here.error());
  const auto found = actors::forecast_scenario(*wanted, **model, *here);
  if (!found)
    return fail(found.error());
  fmt::print("{}",
             options.json ? simulation_json(*wanted, *found) + "\n"
                          : simulation_text(*wanted, *found));
  return 0;
}

} // namespace troupe::cli
