#include "actors/serve/readiness.hpp"

#include "actors/rank/rank_phases.hpp"
#include "config/ids.hpp"

#include <fmt/core.h>

namespace troupe::actors::serve {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string name_rank(const rank_status& rank) {
  return fmt::format(
    "stage {}, rank {} on node '{}'", rank.stage, number(rank.gauge.rank), rank.node);
}

readiness::readiness(milliseconds bound, time_point now) : bound_(bound), since_(now) {}

void readiness::hear(const cluster_status& known, time_point now) {
  auto stuck = find_stuck(known, now); // in any case: it follows the ranks' progress
  if (known.phase != "serving") {
    conclude(
      fmt::format(
        "the cluster is {}{}{}", known.phase, known.reason.empty() ? "" : ": ", known.reason),
      now);
    return;
  }
  auto silent = find_silent(known);
  conclude(silent.empty() ? std::move(stuck) : std::move(silent), now);
}

void readiness::miss(time_point asked, time_point now) {
  if (now - asked > bound_)
    conclude(fmt::format("the director has not answered for {} ms",
                         duration_cast<milliseconds>(bound_).count()),
             now);
}

milliseconds readiness::since(time_point now) const {
  return duration_cast<milliseconds>(now - since_);
}

/// The time counts from the last change between ready and not: a reason may grow more precise.
void readiness::conclude(std::string reason, time_point now) {
  if (reason.empty() != reason_.empty())
    since_ = now;
  reason_ = std::move(reason);
}

std::string readiness::find_silent(const cluster_status& known) const {
  for (const auto& rank : known.ranks)
    if (milliseconds(rank.silent_ms) > bound_)
      return fmt::format("{} has been silent for {} ms", name_rank(rank), rank.silent_ms);
  return {};
}

/// Only a rank that computes can be stuck: the others wait for it.
std::string readiness::find_stuck(const cluster_status& known, time_point now) {
  std::string found;
  for (const auto& rank : known.ranks) {
    auto& last = progress_[rank.gauge.rank];
    if (last.value != rank.gauge.progress || last.changed == time_point{})
      last = {rank.gauge.progress, now};
    const auto phase = static_cast<rank_phase>(rank.gauge.phase);
    const bool computes = phase == rank_phase::in_group || phase == rank_phase::leaving;
    if (found.empty() && computes && now - last.changed > bound_)
      found = fmt::format("{} has made no progress in step {} for {} ms",
                          name_rank(rank),
                          number(rank.gauge.step),
                          duration_cast<milliseconds>(now - last.changed).count());
  }
  return found;
}

} // namespace troupe::actors::serve
