#include "compute/architectures/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace troupe::compute {
namespace {

error broken(std::string sentence) {
  return {errc::contract_violation, std::move(sentence)};
}

result<void> check_paths(const graph& layout) {
  std::set<std::string_view> paths;
  for (const auto& group : layout.groups)
    for (const auto& path : group.unit_paths) {
      if (path.empty())
        return broken(fmt::format("group '{}' has a unit with an empty path", group.name));
      if (!paths.insert(path).second)
        return broken(fmt::format("unit path '{}' occurs twice", path));
    }
  return {};
}

result<void> check_edges(const graph& layout) {
  for (const auto& group : layout.groups)
    for (const auto& other : group.depends_on)
      if (layout.slot(other) == layout.groups.size())
        return broken(
          fmt::format("group '{}' depends on '{}', which is not declared", group.name, other));
  return {};
}

} // namespace

std::size_t graph::slot(std::string_view group) const {
  const auto found = std::find_if(
    groups.begin(), groups.end(), [&](const auto& candidate) { return candidate.name == group; });
  return static_cast<std::size_t>(found - groups.begin());
}

result<void> check_graph(const graph& layout) {
  std::set<std::string_view> names;
  for (const auto& group : layout.groups) {
    if (!names.insert(group.name).second)
      return broken(fmt::format("group '{}' is declared twice", group.name));
    if (group.is == graph_group::kind::prediction && !group.on_output_owner)
      return broken(fmt::format("prediction group '{}' is not on the output owner", group.name));
  }
  const auto primary = layout.slot(layout.primary);
  if (primary == layout.groups.size())
    return broken(fmt::format("primary group '{}' is missing", layout.primary));
  if (layout.groups[primary].is != graph_group::kind::pipeline_decoder)
    return broken(fmt::format("primary group '{}' is not a pipeline decoder", layout.primary));
  if (auto paths = check_paths(layout); !paths)
    return paths;
  return check_edges(layout);
}

result<ownership> check_ownership(const graph& layout, ownership claimed) {
  std::set<std::string_view> seen;
  for (const auto& owned : claimed.groups) {
    const auto slot = layout.slot(owned.group);
    if (slot == layout.groups.size())
      return broken(fmt::format("a partition names group '{}', which is not declared; '{}' is",
                                owned.group,
                                layout.primary));
    if (!seen.insert(owned.group).second)
      return broken(fmt::format("a partition names group '{}' twice", owned.group));
    const auto units = layout.groups[slot].unit_paths.size();
    if (owned.units.begin >= owned.units.end)
      return broken(
        fmt::format("a partition owns no layer of group '{}': [{}, {}); a stage without "
                    "layers is not possible, use at most {} stages",
                    owned.group,
                    owned.units.begin,
                    owned.units.end,
                    units));
    if (owned.units.end > units)
      return broken(fmt::format("a partition owns layers [{}, {}) of group '{}', which has {}",
                                owned.units.begin,
                                owned.units.end,
                                owned.group,
                                units));
  }
  std::set<std::string_view> roles;
  for (const auto* list : {&claimed.owned_roles, &claimed.stored_roles})
    for (const auto& role : *list) {
      if (role.empty())
        return broken("a partition has an ownership role with an empty name");
      if (!roles.insert(role).second)
        return broken(fmt::format("a partition has the ownership role '{}' twice", role));
    }
  std::sort(claimed.groups.begin(), claimed.groups.end(), [&](const auto& left, const auto& right) {
    return layout.slot(left.group) < layout.slot(right.group);
  });
  return claimed;
}

result<void> prove_same_graph(const graph& cut_for, const graph& layout) {
  if (cut_for.primary != layout.primary || cut_for.groups.size() != layout.groups.size())
    return broken("the partition was cut for a graph with other groups");
  for (std::size_t slot = 0; slot < layout.groups.size(); ++slot) {
    const auto& ours = cut_for.groups[slot];
    const auto& theirs = layout.groups[slot];
    if (ours.unit_paths != theirs.unit_paths)
      return broken(fmt::format("the units of group '{}' differ from those that the partition was "
                                "cut for",
                                theirs.name));
    if (ours != theirs)
      return broken(fmt::format("name, kind or edges of group '{}' differ from those that the "
                                "partition was cut for",
                                theirs.name));
  }
  return {};
}

} // namespace troupe::compute
