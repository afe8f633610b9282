#pragma once
// A cluster's state in words: for progress, tables and the last line of a run. Hides the messages
// from the commands.

#include "actors/control/client.hpp"
#include "config/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::cli {

/// The name of a rank_phase as it travels.
std::string_view phase_name(std::uint8_t phase);

/// One line about where a start stands: who is missing, how much is loaded, by rank.
std::string progress_text(const actors::cluster_status& status);

/// One line a rank: node, place, layers, phase, links.
std::string ranks_text(const actors::cluster_status& status);

/// ranks_text of what the cluster says now.
result<std::string> describe_ranks(actors::cluster_client& client,
                                   std::chrono::milliseconds deadline);

/// Phase, nodes and ranks of a cluster, in a few words.
result<std::string> describe_state(actors::cluster_client& client,
                                   std::chrono::milliseconds deadline);

/// Everything, as tables.
std::string status_text(const actors::cluster_status& status);

/// One JSON object.
std::string status_json(const actors::cluster_status& status);

/// What a run moved, from the gauges of all ranks.
struct traffic {
  std::size_t ranks = 0;
  std::size_t stages = 0;
  std::size_t tensor = 0;
  std::uint64_t rows = 0; ///< Prompt and answer tokens that all ranks have told of.
  std::uint64_t boundary_frames = 0;
  std::uint64_t boundary_bytes = 0;
  std::string transports; ///< The different links, joined.
};

result<traffic> read_traffic(actors::cluster_client& client, std::chrono::milliseconds deadline);

/// Bytes that one token carries over one link of one boundary; 0 when there is no boundary.
double bytes_per_boundary(const traffic& before, const traffic& after);

} // namespace troupe::cli
