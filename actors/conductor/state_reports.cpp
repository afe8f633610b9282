#include "actors/conductor/state_reports.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

range overlap(const range& a, const range& b) {
  const auto begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

} // namespace

held_slots join_reports(const std::map<rank_id, std::vector<held_slot>>& reports,
                        std::size_t stages,
                        std::size_t tensor_size) {
  held_slots joined;
  std::map<slot_id, std::vector<std::size_t>> said; // by stage: ranks that hold it
  for (const auto& [rank, slots] : reports) {
    const auto stage = number(rank) / tensor_size;
    if (stage >= stages)
      continue;
    for (const auto& one : slots) {
      auto& holdings = joined[one.slot];
      holdings.resize(stages);
      auto& count = said[one.slot];
      count.resize(stages);
      const stage_holding told{one.length, {one.rows_begin, one.rows_end}};
      auto& known = holdings[stage];
      if (count[stage]++ == 0)
        known = told;
      known.positions = std::min(known.positions, told.positions);
      known.rows = overlap(known.rows, told.rows);
    }
  }
  for (auto& [slot, holdings] : joined)
    for (std::size_t stage = 0; stage < stages; ++stage)
      if (said[slot][stage] < tensor_size)
        holdings[stage] = {};
  return joined;
}

} // namespace troupe::actors
