#pragma once
// The plan: which rank holds what, worked out from the cluster file and the model before anything
// is loaded or a socket is opened. Pure: the same settings and the same model give the same plan on
// every node.

#include "compute/model.hpp"
#include "config/settings.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// What one rank will be.
struct rank_plan {
  rank_id rank{};
  std::size_t node = 0;          ///< Position in settings.nodes.
  std::size_t index_in_node = 0; ///< 0 ... node.ranks - 1.
  coordinates where;
  compute::partition_record record;
  compute::shard_description shard;
  std::size_t weight_bytes = 0;  ///< Held weights.
  std::size_t state_bytes = 0;   ///< Attention memory for `pages` pages.
  std::size_t scratch_bytes = 0; ///< Activations of a step, an upper bound.
};

/// What one node needs, against what it has.
struct node_plan {
  std::size_t node = 0;
  std::size_t needed_bytes = 0;
  std::size_t budget_bytes = 0; ///< From the file, or the host's memory when it is this host.
  bool budget_known = false;
};

struct cluster_plan {
  axes sizes;
  dtype hold = dtype::f32;
  std::size_t context = 0; ///< Tokens of one sequence at most.
  std::size_t max_sequences = 0;
  std::size_t max_rows = 0;     ///< Rows of one step at most.
  std::size_t pages = 0;        ///< Pages of attention state on every rank: the same number.
  std::vector<range> stages;    ///< Layers of each stage.
  std::vector<rank_plan> ranks; ///< Ascending by rank.
  std::vector<node_plan> nodes;
  std::size_t boundary_row_bytes = 0; ///< What one row carries over each boundary.
  std::size_t reduce_row_bytes = 0; ///< What one row reduces in all per step and rank (2 a layer).
};

/// Works the plan out. Errors point at the key of the cluster file that cannot be met, say by how
/// much, and which values would work: more stages than layers (A05), tensor above the number of
/// heads (A01), a budget that does not hold weights and state (E19), a context for which state does
/// not fit (B27), layer ranges that do not cover the model.
/// `memory_here`: free bytes of this host, for nodes with an automatic budget that live here; 0 =
/// do not check those.
result<cluster_plan>
make_plan(const cluster_settings& settings, const compute::model& model, std::size_t memory_here);

/// Pages that one sequence of `tokens` tokens takes.
std::size_t pages_for(std::size_t tokens);

} // namespace troupe::actors
