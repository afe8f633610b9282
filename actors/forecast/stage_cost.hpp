#pragma once
// What a step costs: seconds of arithmetic on each rank, of sums over its tensor group, and of the
// boundary to the next stage; bytes of each. Pure functions of a plan, a shape and a few figures.

#include "actors/forecast/host_speed.hpp"
#include "actors/plan/plan.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// How far apart two ranks are.
enum class distance : std::uint8_t { process, host, rack, across };

inline constexpr std::size_t distances = 4;

std::string_view to_string(distance how_far);

/// Time of `bytes` is latency_s + bytes / bytes_per_s.
struct link_speed {
  double latency_s = 0;
  double bytes_per_s = 1;

  double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }

  friend bool operator==(const link_speed&, const link_speed&) = default;
};

/// Where a node is. Nodes of one host share its cores.
struct node_place {
  std::size_t host = 0;
  std::size_t rack = 0;
  std::size_t threads = 1; ///< Of each rank.
};

/// A plan and what it runs on.
struct forecast_cluster {
  cluster_plan plan;
  compute::model_shape shape;
  std::vector<node_place> nodes; ///< As the plan numbers them.
  std::size_t head = 0;          ///< The conductor's node.
  std::vector<host_speed> hosts;
  std::array<link_speed, distances> links;    ///< Of boundaries, by distance.
  std::array<link_speed, distances> reducing; ///< Of sums over a tensor group: ranks of one host
                                              ///< have a faster road than messages.
  std::size_t prefill_chunk = 64;
  std::size_t micro_batches = 0; ///< 0: as many as there are stages.

  distance between(std::size_t one_node, std::size_t other_node) const;

  /// The ranks of a stage; their positions in the plan are consecutive.
  std::span<const rank_plan> ranks_of(std::size_t stage) const;

  /// The farthest two ranks of the group.
  distance spread(std::size_t stage) const;
};

/// What a step brings to every stage.
struct step_load {
  std::size_t rows = 0;
  std::size_t outputs = 0;    ///< Rows whose token is chosen ...
  std::size_t whole_rows = 0; ///< ... those of them that a tensor group gathers ...
  std::size_t candidates = 0; ///< ... and what each rank brings to the others instead of a row.
  std::size_t sequences = 0;
  double read_positions = 0; ///< Positions whose keys and values are read, once a sequence.
  double scored_pairs = 0;   ///< (row, position) pairs that attention scores.
};

/// Rows of one sequence: `count` new ones from `position` on.
void add_rows(step_load& load, std::size_t position, std::size_t count);

/// The token of a row is chosen, from so many candidates; 0: from whole logits.
void add_output(step_load& load, std::size_t candidates);

/// Arithmetic of one rank for a step.
core_work rank_work(const forecast_cluster& cluster, const rank_plan& rank, const step_load& load);

/// Bytes that one member sends for a sum of `bytes` over `members`, and how long the sum takes.
/// Short vectors go from each to each; long ones are summed in parts: whichever is faster.
struct sum_cost {
  double s = 0;
  double bytes_sent = 0;
};

sum_cost sum_of(double bytes, std::size_t members, const link_speed& link);

/// All sums of a stage in a step, and what it gathers of its logits.
sum_cost group_cost(const forecast_cluster& cluster, std::size_t stage, const step_load& load);

/// A message under way: the wire is taken for transfer_s, and latency_s later it is there.
struct wire_time {
  double latency_s = 0;
  double transfer_s = 0;

  double seconds() const { return latency_s + transfer_s; }
};

/// From a stage to the next one: a link for each tensor rank, all at once; the slowest of them.
wire_time boundary_time(const forecast_cluster& cluster, std::size_t stage, const step_load& load);
double boundary_bytes(const forecast_cluster& cluster, const step_load& load);

/// A message between the conductor and a stage.
wire_time message_time(const forecast_cluster& cluster, std::size_t stage, const step_load& load);

} // namespace troupe::actors
