#pragma once
// What the ranks of a new plan say that they hold (rank/state_moves), for the schedule.

#include "actors/conductor/schedule.hpp"
#include "actors/messages/steps.hpp"

#include <map>
#include <vector>

namespace troupe::actors {

/// What the reports of all ranks of a plan say together: a stage holds what each of its ranks does.
held_slots join_reports(const std::map<rank_id, std::vector<held_slot>>& reports,
                        std::size_t stages,
                        std::size_t tensor_size);

} // namespace troupe::actors
