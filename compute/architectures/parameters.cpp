#include "compute/architectures/parameters.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace troupe::compute {
namespace {

error broken(std::string sentence) {
  return {errc::contract_violation, std::move(sentence)};
}

result<void> check_place(const graph& layout, const parameter& candidate) {
  if (candidate.role.empty())
    return broken(fmt::format("parameter '{}' has an empty role", candidate.name));
  if (candidate.shape.empty() || candidate.shape.size() > 2
      || std::find(candidate.shape.begin(), candidate.shape.end(), 0) != candidate.shape.end())
    return broken(fmt::format("parameter '{}' has the shape [{}]; one or two positive dimensions "
                              "are possible",
                              candidate.name,
                              fmt::join(candidate.shape, ", ")));
  if (!candidate.place)
    return {};
  const auto slot = layout.slot(candidate.place->group);
  if (slot == layout.groups.size())
    return broken(fmt::format("parameter '{}' belongs to group '{}', which is not declared",
                              candidate.name,
                              candidate.place->group));
  const auto units = layout.groups[slot].unit_paths.size();
  if (candidate.place->unit >= units)
    return broken(fmt::format("parameter '{}' belongs to unit {} of group '{}', which has {}",
                              candidate.name,
                              candidate.place->unit,
                              candidate.place->group,
                              units));
  return {};
}

} // namespace

result<void> check_parameters(const graph& layout, std::span<const parameter> parameters) {
  std::set<std::string_view> names;
  std::set<std::tuple<std::string_view, std::size_t, std::string_view>> roles;
  for (const auto& candidate : parameters) {
    if (auto sound = check_place(layout, candidate); !sound)
      return sound;
    if (!names.insert(candidate.name).second)
      return broken(fmt::format("parameter '{}' is described twice", candidate.name));
    const std::string_view group = candidate.place ? candidate.place->group : std::string_view();
    const auto unit = candidate.place ? candidate.place->unit : 0;
    if (!roles.emplace(group, unit, candidate.role).second)
      return broken(fmt::format("role '{}' of parameter '{}' is taken by another parameter",
                                candidate.role,
                                candidate.name));
  }
  return {};
}

result<void> match_parameters(std::span<const parameter> authoritative,
                              std::span<const found_parameter> found,
                              const std::function<bool(std::string_view)>& known_extra,
                              const std::function<bool(std::string_view)>& excused) {
  std::map<std::string_view, const parameter*> wanted;
  for (const auto& candidate : authoritative)
    wanted.emplace(candidate.name, &candidate);
  std::set<std::string_view> seen;
  for (const auto& [name, shape] : found) {
    const auto match = wanted.find(name);
    if (match == wanted.end()) {
      if (known_extra(name))
        continue;
      return error{
        errc::invalid_model,
        fmt::format("tensor '{}' is not expected; the config describes no such parameter", name)};
    }
    if (!seen.insert(name).second)
      return error{errc::invalid_model, fmt::format("tensor '{}' was found twice", name)};
    if (match->second->shape != shape)
      return error{errc::invalid_model,
                   fmt::format("tensor '{}' has the shape [{}]; the config asks for [{}]",
                               name,
                               fmt::join(shape, ", "),
                               fmt::join(match->second->shape, ", "))};
  }
  for (const auto& candidate : authoritative)
    if (!seen.contains(candidate.name) && !excused(candidate.name))
      return error{errc::invalid_model, fmt::format("tensor '{}' is missing", candidate.name)};
  return {};
}

std::vector<const parameter*> local_parameters(std::span<const parameter> parameters,
                                               const ownership& owned) {
  const auto has_role = [&](const std::string& role) {
    const auto in = [&](const auto& list) {
      return std::find(list.begin(), list.end(), role) != list.end();
    };
    return in(owned.owned_roles) || in(owned.stored_roles);
  };
  const auto has_unit = [&](const unit_place& place) {
    return std::any_of(owned.groups.begin(), owned.groups.end(), [&](const auto& group) {
      return group.group == place.group && group.units.contains(place.unit);
    });
  };
  std::vector<const parameter*> local;
  for (const auto& candidate : parameters)
    if (candidate.place ? has_unit(*candidate.place) : has_role(candidate.role))
      local.push_back(&candidate);
  return local;
}

const range& shard_ranges::of(dealt what) const {
  switch (what) {
  case dealt::heads: return heads;
  case dealt::kv_heads: return kv_heads;
  case dealt::ffn: return ffn;
  case dealt::vocabulary: return vocabulary;
  }
  return heads;
}

std::size_t max_tensor_size(const model_shape& shape) {
  return std::min({shape.heads, shape.ffn, shape.vocabulary});
}

result<shard_ranges>
plan_shard(const model_shape& shape, std::size_t tensor_rank, std::size_t tensor_size) {
  const auto most = max_tensor_size(shape);
  if (tensor_size == 0 || tensor_size > most)
    return error{errc::invalid_argument,
                 fmt::format("a tensor-parallel group of {} ranks cannot share {} heads, {} "
                             "feed-forward columns and {} vocabulary rows; sizes 1 to {} work",
                             tensor_size,
                             shape.heads,
                             shape.ffn,
                             shape.vocabulary,
                             most)};
  if (tensor_rank >= tensor_size)
    return error{errc::invalid_argument,
                 fmt::format("rank {} lies outside of its tensor-parallel group of {}",
                             tensor_rank,
                             tensor_size)};
  shard_ranges ranges;
  ranges.heads = split_part(shape.heads, tensor_size, tensor_rank);
  const auto share = shape.heads / shape.kv_heads;
  ranges.kv_heads = {ranges.heads.begin / share, (ranges.heads.end + share - 1) / share};
  ranges.ffn = split_part(shape.ffn, tensor_size, tensor_rank);
  ranges.vocabulary = split_part(shape.vocabulary, tensor_size, tensor_rank);
  return ranges;
}

tensor_part cut_parameter(const parameter& whole, const shard_ranges& ranges) {
  tensor_part part{{0, whole.rows()}, {0, whole.columns()}};
  if (whole.cut) {
    const auto& items = ranges.of(whole.cut->by);
    const range elements{items.begin * whole.cut->elements, items.end * whole.cut->elements};
    (whole.cut->along == axis_cut::axis::rows ? part.rows : part.columns) = elements;
  }
  return part;
}

} // namespace troupe::compute
