#pragma once
// What `troupe plan --simulate` shows, as a table and as JSON.

#include "actors/forecast/scenario_cluster.hpp"
#include "config/scenario.hpp"

#include <string>

namespace troupe::cli {

/// Tables for people.
std::string simulation_text(const scenario& wanted, const actors::scenario_forecast& found);

/// One JSON object with everything; the keys are documented by their names and stay as they are.
std::string simulation_json(const scenario& wanted, const actors::scenario_forecast& found);

} // namespace troupe::cli
