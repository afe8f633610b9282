#pragma once
// A scenario as the planner and the simulator take it: the model it names, the plan of chosen
// sizes, and the cluster around it.

#include "actors/forecast/calibration.hpp"
#include "actors/forecast/cluster_here.hpp"
#include "actors/forecast/recoveries.hpp"
#include "actors/forecast/simulation.hpp"
#include "config/scenario.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace troupe::actors {

/// What a size of pipeline and tensor group came to.
struct tried_size {
  std::size_t pipeline = 0;
  std::size_t tensor = 0;
  double figure = 0; ///< Tokens/s: of all streams, or of one; 0 where it does not fit.
};

struct scenario_forecast {
  forecast_cluster cluster;
  std::size_t hosts_used = 0;
  std::vector<tried_size> tried; ///< Where sizes were chosen.
  simulated_run run;
  rates figures;
  recovery_forecast recoveries;
};

/// The model that a scenario names: its folder, or a sketch of its sizes.
result<std::shared_ptr<const compute::model>> model_of(const scenario& wanted);

/// Plans it and runs it. `here` is needed where a host is `measured` (check). Errors point at the
/// scenario: sizes that the model cannot be cut into, or that do not fit (out_of_memory).
result<scenario_forecast> forecast_scenario(const scenario& wanted,
                                            const compute::model& model,
                                            const std::optional<calibration>& here);

} // namespace troupe::actors
