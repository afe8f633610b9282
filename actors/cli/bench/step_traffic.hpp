#pragma once
// What one token of one stream moves between the ranks of a cluster, by the ranks' own counters.

#include "actors/control/client.hpp"
#include "config/result.hpp"

namespace troupe::cli {

struct step_traffic {
  double boundary_bytes = 0; ///< Of all boundaries together: rows and headers.
  double boundary_messages = 0;
  double reduction_bytes = 0; ///< Results of collectives on one rank.
  double reductions = 0;      ///< Of one rank.
};

/// Runs the request, whose steps have one row each (a prompt of one token), and divides what it
/// moved by its rows. Errors: those of the client, timed_out where the counters do not come.
result<step_traffic> traffic_of_token(actors::cluster_client& client,
                                      const actors::text_request& one);

} // namespace troupe::cli
