#include "actors/plan/stage_split.hpp"

#include <limits>
#include <utility>

namespace troupe::actors {

namespace {

/// Slowest stage, then the sum of squares: smaller is better.
using score = std::pair<double, double>;

bool better(const score& left, const score& right) {
  // Less than a thousandth is no difference: neither the last bits of a sum nor the one row of the
  // embedding that the first stage looks up may move a layer (contract rule 2).
  constexpr double slack = 1e-3;
  if (left.first < right.first * (1 - slack))
    return true;
  if (left.first > right.first * (1 + slack))
    return false;
  return left.second < right.second * (1 - slack);
}

} // namespace

std::vector<range> balance_stages(std::size_t layers,
                                  const compute::model_costs& costs,
                                  const std::vector<double>& speeds) {
  const auto stages = speeds.size();
  check(stages >= 1 && layers >= stages, "every stage has a layer");
  // A step reads every weight once and, for one row, does little with it: bytes are time.
  const auto cost_of = [&](std::size_t stage, std::size_t count) {
    double bytes = static_cast<double>(count) * costs.unit_bytes;
    if (stage == 0)
      bytes += costs.input_bytes;
    if (stage + 1 == stages)
      bytes += costs.output_bytes;
    return bytes / speeds[stage];
  };
  constexpr auto never = std::numeric_limits<double>::infinity();
  // best[s][l]: the first s stages hold the first l layers; cut[s][l]: how many the last one has.
  std::vector best(stages + 1, std::vector<score>(layers + 1, {never, never}));
  std::vector cut(stages + 1, std::vector<std::size_t>(layers + 1, 0));
  best[0][0] = {0, 0};
  for (std::size_t s = 1; s <= stages; ++s) {
    for (std::size_t l = s; l + (stages - s) <= layers; ++l) {
      for (std::size_t count = 1; count <= l - (s - 1); ++count) {
        const auto& before = best[s - 1][l - count];
        if (before.first == never)
          continue;
        const auto cost = cost_of(s - 1, count);
        const score now{std::max(before.first, cost), before.second + cost * cost};
        if (better(now, best[s][l])) {
          best[s][l] = now;
          cut[s][l] = count;
        }
      }
    }
  }
  std::vector<range> ranges(stages);
  auto end = layers;
  for (std::size_t s = stages; s > 0; --s) {
    ranges[s - 1] = {end - cut[s][end], end};
    end -= cut[s][end];
  }
  return ranges;
}

} // namespace troupe::actors
