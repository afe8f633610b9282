#pragma once
// Forecasts of the commands: what a plan or a run of this host would reach, from figures that were
// measured here before (`troupe plan --calibrate`).

#include "actors/cli/plan_report.hpp"
#include "actors/control/client.hpp"
#include "actors/forecast/cluster_here.hpp"
#include "config/settings.hpp"

#include <optional>
#include <vector>

namespace troupe::cli {

/// The figures of this host for weights held so: those that were kept, or, where `measure`, new
/// ones, which are kept then. Nothing where there are none. A folder that cannot be written to is a
/// warning.
result<std::optional<actors::calibration>> figures_of_this_host(dtype hold, bool measure);

/// What the plan would reach; nothing where the plan does not fit or there are no figures.
result<std::optional<actors::forecast>>
forecast_plan(const cluster_settings& settings, const plan_report& report, bool measure);

/// The run that led to these answers, in virtual time; nothing without figures, or without answers.
std::optional<actors::simulated_run> forecast_run(const cluster_settings& settings,
                                                  const std::vector<actors::text_answer>& answers);

} // namespace troupe::cli
