#pragma once
// A trace of all ranks, for programs (Perfetto, chrome://tracing) and in a few lines for people.

#include "actors/messages/observing.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::cli {

/// Leaves `steps` steps, the same ones of every part: from the first one that all of them have on.
void cut_to_common_steps(actors::trace_report& report, std::uint32_t steps);

/// One JSON object in Chrome's trace event format: a process a rank, the conductor first with a
/// thread a micro-batch; times in microseconds from the first span on. A span's `args` say epoch,
/// step, micro-batch, rows and requests.
std::string trace_json(const actors::trace_report& report);

/// Of one rank, over the time from the first step's begin to the last one's end on any rank.
struct rank_use {
  rank_id rank{};
  std::uint32_t stage = 0;
  std::size_t steps = 0;
  double busy = 0;       ///< Share of the time in steps; the rest are bubbles.
  double collective = 0; ///< Share in collectives, a part of the former.
};

struct trace_summary {
  double seconds = 0;
  std::size_t steps = 0;       ///< Of the rank with the most.
  double uncertain_ms = 0;     ///< The clocks of nodes may differ by so much.
  std::vector<rank_use> ranks; ///< Without the conductor.
};

trace_summary summarise(const actors::trace_report& report);

} // namespace troupe::cli
