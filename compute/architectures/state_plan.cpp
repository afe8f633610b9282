#include "compute/architectures/state_plan.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::compute {
namespace {

error broken(std::string sentence) {
  return {errc::contract_violation, std::move(sentence)};
}

std::vector<state_rule> sorted_rules(const state_plan& plan) {
  auto rules = plan.rules;
  std::stable_sort(rules.begin(), rules.end(), [](const auto& left, const auto& right) {
    return left.segments.begin < right.segments.begin;
  });
  return rules;
}

result<void> check_rule(const graph& layout, const state_plan& plan, const state_rule& rule) {
  const auto slot = layout.slot(rule.group);
  if (slot == layout.groups.size())
    return broken(fmt::format("a state rule names group '{}', which is not declared", rule.group));
  if (rule.segments.begin >= rule.segments.end)
    return broken(fmt::format("the state rule of group '{}' is empty", rule.group));
  if (rule.segments.end > plan.layout.size())
    return broken(fmt::format("the state rule of group '{}' ends at segment {} of {}",
                              rule.group,
                              rule.segments.end,
                              plan.layout.size()));
  const auto units = layout.groups[slot].unit_paths.size();
  if (rule.is == state_rule::kind::unit_aligned && rule.segments.size() != units)
    return broken(fmt::format("the state rule of group '{}' has {} segments for {} units",
                              rule.group,
                              rule.segments.size(),
                              units));
  return {};
}

} // namespace

result<void> check_state_plan(const graph& layout, const state_plan& plan) {
  if (plan.rules.empty())
    return broken("the state plan has no rule");
  std::size_t next = 0;
  for (const auto& rule : sorted_rules(plan)) {
    if (auto sound = check_rule(layout, plan, rule); !sound)
      return sound;
    if (rule.segments.begin < next)
      return broken(
        fmt::format("the state rule of group '{}' overlaps the one before it", rule.group));
    if (rule.segments.begin > next)
      return broken(fmt::format("state segment {} belongs to nobody", next));
    next = rule.segments.end;
  }
  if (next != plan.layout.size())
    return broken(fmt::format("state segment {} belongs to nobody", next));
  return {};
}

result<std::optional<state_layout>>
resolve_state(const state_plan& plan, const ownership& owned, bool owns_output) {
  std::optional<range> chosen;
  for (const auto& rule : sorted_rules(plan)) {
    range part = rule.segments;
    if (rule.is == state_rule::kind::unit_aligned) {
      const auto group = std::find_if(owned.groups.begin(), owned.groups.end(), [&](const auto& g) {
        return g.group == rule.group;
      });
      if (group == owned.groups.end())
        continue;
      part = {rule.segments.begin + group->units.begin, rule.segments.begin + group->units.end};
    } else if (!owns_output) {
      continue;
    }
    if (chosen && chosen->end != part.begin)
      return broken(fmt::format("the state segments of a partition are not adjacent: [{}, {}) and "
                                "[{}, {})",
                                chosen->begin,
                                chosen->end,
                                part.begin,
                                part.end));
    chosen = chosen ? range{chosen->begin, part.end} : part;
  }
  if (!chosen)
    return std::optional<state_layout>();
  state_layout local{.first_unit = chosen->begin};
  local.segments.assign(plan.layout.begin() + static_cast<std::ptrdiff_t>(chosen->begin),
                        plan.layout.begin() + static_cast<std::ptrdiff_t>(chosen->end));
  return std::optional(std::move(local));
}

result<void> check_group_driver(const ownership& owned,
                                std::string_view group,
                                const range& stored_units,
                                const std::optional<state_layout>& state,
                                bool owns_state) {
  const auto found = std::find_if(
    owned.groups.begin(), owned.groups.end(), [&](const auto& g) { return g.group == group; });
  if (found == owned.groups.end())
    return broken(fmt::format("a driver is made for group '{}', which is not owned", group));
  const auto& units = found->units;
  if (stored_units != units)
    return broken(fmt::format("the backend stores units [{}, {}) of group '{}'; [{}, {}) are owned",
                              stored_units.begin,
                              stored_units.end,
                              group,
                              units.begin,
                              units.end));
  if (!owns_state)
    return {};
  if (!state)
    return broken(fmt::format("group '{}' keeps state, but the partition has none", group));
  if (state->first_unit > units.begin || state->first_unit + state->segments.size() < units.end)
    return broken(fmt::format("the state covers units [{}, {}); group '{}' owns [{}, {})",
                              state->first_unit,
                              state->first_unit + state->segments.size(),
                              group,
                              units.begin,
                              units.end));
  return {};
}

} // namespace troupe::compute
