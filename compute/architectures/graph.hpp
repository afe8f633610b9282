#pragma once
// The groups of an architecture and what a rank owns of them. Contract rules 3 to 6 and 8.

#include "config/result.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// A group of consecutive units. Pipeline decoders are cut into stages; a prediction group (for
/// example a draft head) lies with the output owner.
struct graph_group {
  enum class kind : std::uint8_t { pipeline_decoder, prediction };

  std::string name;
  kind is = kind::pipeline_decoder;
  std::vector<std::string> unit_paths = {}; ///< One per unit, for example "model.layers.7".
  std::vector<std::string> depends_on = {}; ///< Edges: groups whose results this one reads.
  bool on_output_owner = false;             ///< Where a prediction group has to lie.

  friend bool operator==(const graph_group&, const graph_group&) = default;
};

/// The canonical layout: groups in slot order, derived from the architecture itself.
struct graph {
  std::string primary; ///< The pipeline decoder that tokens go through.
  std::vector<graph_group> groups;

  /// Slot of a group, or groups.size().
  std::size_t slot(std::string_view group) const;

  friend bool operator==(const graph&, const graph&) = default;
};

/// Rule 3. Errors: empty path, repeated path, primary group missing or not a pipeline decoder,
/// prediction group not on the output owner, a group twice, an edge to an unknown group.
result<void> check_graph(const graph& layout);

/// A group, and the non-empty global range of its units, that a partition owns.
struct owned_group {
  std::string group;
  range units;

  friend bool operator==(const owned_group&, const owned_group&) = default;
};

/// What a partition owns. A stored role is a replica that it needs without having the duty that
/// goes with the role: the embedding of a tied head on a stage that does not own input (rule 19).
struct ownership {
  std::vector<owned_group> groups;
  std::vector<std::string> owned_roles = {};
  std::vector<std::string> stored_roles = {};
};

/// Rules 4 and 5; returns it with the groups in slot order. Errors: unknown or repeated group,
/// empty range, range past the end, empty or repeated role.
result<ownership> check_ownership(const graph& layout, ownership claimed);

/// Rule 8: a partition that was cut for `cut_for` fits `layout` when graph, edges and unit paths
/// are the same; equal group names are not enough.
result<void> prove_same_graph(const graph& cut_for, const graph& layout);

} // namespace troupe::compute
