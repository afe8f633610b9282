#pragma once
// What an architecture keeps between steps, and which slice of it a partition owns. Contract rules
// 9 to 11.

#include "compute/architectures/graph.hpp"
#include "compute/state_layout.hpp"
#include "config/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// Assigns consecutive segments of the complete layout to owners.
struct state_rule {
  enum class kind : std::uint8_t {
    unit_aligned, ///< Segment i belongs to unit i of the group.
    output_owner, ///< All of them belong to the output owner.
  };
  std::string group;
  kind is = kind::unit_aligned;
  range segments;
};

struct state_plan {
  std::vector<state_segment> layout; ///< Complete: of all units of all groups.
  std::vector<state_rule> rules;
};

/// Rule 9: at least one rule, and sorted by start they cover the layout exactly. Errors: no rule,
/// empty rule, out of bounds, overlap, segment that nobody owns, unknown group, length different
/// from the group's unit count.
result<void> check_state_plan(const graph& layout, const state_plan& plan);

/// Rules 10 and 11: the slice of a partition with its global start; nothing for a stateless one.
/// The plan must have passed check_state_plan. Error: chosen ranges that are not adjacent.
result<std::optional<state_layout>>
resolve_state(const state_plan& plan, const ownership& owned, bool owns_output);

/// Rule 13: a driver may be made for `group` when the partition owns it, the backend stores exactly
/// its owned units, and, unless the group is stateless, the state covers them. Distinct errors.
result<void> check_group_driver(const ownership& owned,
                                std::string_view group,
                                const range& stored_units,
                                const std::optional<state_layout>& state,
                                bool owns_state);

} // namespace troupe::compute
