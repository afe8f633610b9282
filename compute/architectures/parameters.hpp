#pragma once
// The parameters of an architecture: their names in files, shapes, owners, and how they are cut
// among the ranks of a tensor-parallel group. Contract rules 6, 7, 63 to 66.

#include "compute/architectures/graph.hpp"
#include "compute/model.hpp"
#include "config/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// What is dealt out to the ranks of a tensor-parallel group, whole items at a time.
enum class dealt : std::uint8_t { heads, kv_heads, ffn, vocabulary };

/// Cuts one axis of a tensor: item i covers the elements [i * elements, (i + 1) * elements).
struct axis_cut {
  enum class axis : std::uint8_t { rows, columns };
  axis along = axis::rows;
  dealt by = dealt::heads;
  std::size_t elements = 1;
};

/// Which unit of which group a parameter belongs to.
struct unit_place {
  std::string group;
  std::size_t unit = 0;

  friend bool operator==(const unit_place&, const unit_place&) = default;
};

/// One parameter. A vector counts as one row for cuts: a bias is cut along its columns.
struct parameter {
  std::string name; ///< In the files, for example "model.norm.weight".
  std::string role; ///< What it is, unique within its place: "attention.query.weight".
  std::optional<unit_place> place; ///< Nothing: owned by role ("embedding", "norm", "head").
  std::vector<std::size_t> shape;  ///< One or two dimensions.
  std::optional<axis_cut> cut;     ///< Nothing: whole on every rank.

  std::size_t rows() const { return shape.size() == 2 ? shape[0] : 1; }

  std::size_t columns() const { return shape.back(); }
};

/// Rule 7, the family's half: the description is sound. Errors: unknown group, unit out of range,
/// empty or repeated role, a name twice, a shape that no layer has.
result<void> check_parameters(const graph& layout, std::span<const parameter> parameters);

/// What was found under a name, for match_parameters.
struct found_parameter {
  std::string name;
  std::vector<std::size_t> shape;
};

/// Rule 7, the files' half: what was found equals the authoritative set. Errors: unexpected, twice,
/// wrong shape, and missing unless `excused(name)`. Names for which `known_extra(name)` is true are
/// passed over: what exporters leave in files without being a parameter.
result<void> match_parameters(std::span<const parameter> authoritative,
                              std::span<const found_parameter> found,
                              const std::function<bool(std::string_view)>& known_extra,
                              const std::function<bool(std::string_view)>& excused);

/// Rule 6: the parameters that are local to a partition, in order: role owned or stored, or unit
/// inside of an owned range.
std::vector<const parameter*> local_parameters(std::span<const parameter> parameters,
                                               const ownership& owned);

/// The items of each kind that one rank of a tensor-parallel group gets.
struct shard_ranges {
  range heads;      ///< The one split rule.
  range kv_heads;   ///< Those that its query heads attend to; shared ones are replicated.
  range ffn;        ///< The one split rule.
  range vocabulary; ///< The one split rule.

  const range& of(dealt what) const;
};

/// Largest tensor-parallel size that leaves no rank without a head, a column or a row.
std::size_t max_tensor_size(const model_shape& shape);

/// Errors (rule 66): size 0, rank outside of the group, more ranks than heads.
result<shard_ranges>
plan_shard(const model_shape& shape, std::size_t tensor_rank, std::size_t tensor_size);

/// Rows and columns of `whole` that a rank with these ranges owns.
struct tensor_part {
  range rows;
  range columns;
};

tensor_part cut_parameter(const parameter& whole, const shard_ranges& ranges);

} // namespace troupe::compute
