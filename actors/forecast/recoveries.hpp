#pragma once
// What failures cost over a week: how often the cluster recovers, how long each takes, and which
// part of the time is lost. Pure.

#include "actors/forecast/stage_cost.hpp"
#include "config/scenario.hpp"

namespace troupe::actors {

struct recovery_forecast {
  double per_week = 0;  ///< Recoveries to be expected.
  double process_s = 0; ///< One after a node ended by itself.
  double host_s = 0;    ///< One after a host went away.
  double load_s = 0;    ///< Of these: a host reads what its ranks own.
  double replay_s = 0;  ///< Of these: the lost stage gets the state of running requests back.
  double lost_part = 0; ///< Of the time.
  double lost_s_a_week = 0;
};

/// `positions`: how many positions of all running requests a stage has to get back.
recovery_forecast forecast_recoveries(const forecast_cluster& cluster,
                                      const scenario_failures& failures,
                                      double positions);

} // namespace troupe::actors
