#pragma once
// GET /metrics: what the cluster and its server count, in Prometheus' text format.

#include "actors/messages/clients.hpp"
#include "actors/serve/answer_counts.hpp"

#include <cstddef>
#include <string>

namespace troupe::actors::serve {

/// What the server knows beside the director's word.
struct server_facts {
  std::string model;
  bool ready = false;
  std::size_t connections = 0;
  answer_counts::table answers;
};

/// Counters of ranks begin anew with their processes, as Prometheus expects of counters.
std::string metrics_text(const cluster_status& known, const server_facts& server);

/// The content type of that text.
inline constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

} // namespace troupe::actors::serve
