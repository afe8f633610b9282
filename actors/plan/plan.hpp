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
  std::size_t weight_bytes = 0;     ///< Held weights.
  std::size_t page_bytes = 0;       ///< A page of state: attention, and rows kept for replays.
  std::size_t state_bytes = 0;      ///< `pages` pages.
  std::size_t scratch_bytes = 0;    ///< Activations of a step, an upper bound.
  std::size_t reduce_row_bytes = 0; ///< What a row sums over the tensor group: 2 a layer, and the
                                    ///< embedding. 0 where the group is the rank alone.
  std::size_t gather_row_bytes = 0; ///< What the group gathers for a greedy token: candidates.
  std::size_t gather_whole_row_bytes = 0; ///< The same where all logits of the row are looked at.

  std::size_t total_bytes() const { return weight_bytes + state_bytes + scratch_bytes; }
};

/// What one node needs, against what it has.
struct node_plan {
  std::size_t node = 0;
  std::size_t needed_bytes = 0; ///< Weights, scratch, and state for all pages of the plan.
  std::size_t least_bytes = 0;  ///< The same with state for one sequence.
  std::size_t budget_bytes = 0; ///< From the file, or the host's memory when it is this host.
  bool budget_known = false;
  bool is_here = false; ///< On this host.
};

struct cluster_plan {
  axes sizes;
  dtype hold = dtype::f32;  ///< Weights.
  dtype state = dtype::f32; ///< Keys and values.
  std::size_t context = 0;  ///< Tokens of one sequence at most.
  std::size_t max_sequences = 0;
  std::size_t max_rows = 0;     ///< Rows of one step at most.
  std::size_t pages = 0;        ///< Pages of attention state on every rank: the same number.
  std::vector<range> stages;    ///< Layers of each stage.
  std::vector<rank_plan> ranks; ///< Ascending by rank.
  std::vector<node_plan> nodes;
  bool keeps_boundaries = true;       ///< Stages keep what they sent (recovery.keep_boundaries).
  std::size_t boundary_row_bytes = 0; ///< What a row carries from a rank to the next stage's.
};

/// Works out who holds what, without regard to memory: `pages` and state bytes stay 0. Errors point
/// at the key of the cluster file that cannot be met and say which values would work: more stages
/// than layers (row A05), tensor above the number of heads (A01), layer ranges that do not cover
/// the model, weights of nodes beside layer ranges (A17), a context beyond the model's. Ranks whose
/// files are not on this host are planned from the description alone (B29).
result<cluster_plan> lay_out(const cluster_settings& settings, const compute::model& model);

/// Gives every rank the same number of pages: for as many sequences as asked for, or as many as
/// fit. `memory_here`: free bytes of this host, for its nodes with an automatic budget; 0 = do not
/// check those. Error out_of_memory, with what is needed and what is there, when one sequence does
/// not fit (B27, E19): then the plan holds the pages of that one sequence, to show what would be
/// needed.
result<void>
fit_state(const cluster_settings& settings, cluster_plan& plan, std::size_t memory_here);

/// Both.
result<cluster_plan>
make_plan(const cluster_settings& settings, const compute::model& model, std::size_t memory_here);

/// The plan of the cluster on these nodes alone, by position in settings.nodes, in the order of the
/// stages: with as many stages as their ranks make, and layers dealt anew unless that is all of
/// them. `node` in the plan is a position in settings.nodes.
result<cluster_plan> make_plan(const cluster_settings& settings,
                               const compute::model& model,
                               std::size_t memory_here,
                               const std::vector<std::size_t>& nodes);

/// Whether the ranks of a node (position in settings.nodes) find what they need in `model`, which
/// that node opened. How many tensors that is, or not_found, with node, rank, tensor and file, for
/// the first that is in a file which is not here (row B29).
result<std::size_t> find_tensors(const cluster_settings& settings,
                                 const cluster_plan& plan,
                                 const compute::model& model,
                                 std::size_t node);

} // namespace troupe::actors
