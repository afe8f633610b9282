#pragma once
// Which layers each pipeline stage gets.

#include "compute/model.hpp"
#include "config/topology.hpp"

#include <vector>

namespace troupe::actors {

/// Contiguous, non-empty layer ranges that make the slowest stage as fast as possible, counting the
/// embedding on the first stage and the head on the last; among equals (to a thousandth) the most
/// even one, then the one that gives more to earlier stages. `speeds`: one positive number a stage.
/// Needs at least as many layers as stages (check).
std::vector<range> balance_stages(std::size_t layers,
                                  const compute::model_costs& costs,
                                  const std::vector<double>& speeds);

} // namespace troupe::actors
