// status_json (actors/cli/status_text.hpp), apart from the texts: JSON is a heavy header.
#include "actors/cli/status_text.hpp"
#include "actors/messages/clients.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

using nlohmann::ordered_json;

namespace {

ordered_json rank_json(const actors::rank_status& rank) {
  const auto& gauge = rank.gauge;
  return {
    {"rank", number(gauge.rank)},
    {"node", rank.node},
    {"stage", rank.stage},
    {"tensor", rank.tensor},
    {"layers", {rank.first_unit, rank.last_unit}},
    {"phase", phase_name(gauge.phase)},
    {"epoch", number(gauge.epoch)},
    {"step", number(gauge.step)},
    {"links", rank.links},
    {"silent_ms", rank.silent_ms},
    {"progress", gauge.progress},
    {"load_done_bytes", gauge.load_done_bytes},
    {"load_total_bytes", gauge.load_total_bytes},
    {"bytes_read", rank.bytes_read},
    {"weight_bytes", gauge.bytes_held},
    {"state_bytes", gauge.state_bytes},
    {"steps", gauge.steps},
    {"rows", gauge.rows},
    {"compute_ns", gauge.compute_ns},
    {"collective_ns", gauge.collective_ns},
    {"wait_ns", gauge.wait_ns},
    {"frames_sent", gauge.frames_sent},
    {"payload_bytes_sent", gauge.payload_bytes_sent},
    {"header_bytes_sent", gauge.header_bytes_sent},
    {"frames_received", gauge.frames_received},
    {"tensor_copies", gauge.tensor_copies},
    {"stale_frames", gauge.stale_frames},
    {"rows_replayed", gauge.rows_replayed},
    {"rows_resent", gauge.rows_resent},
    {"state_bytes_sent", gauge.state_bytes_sent},
    {"boundary_frames", gauge.boundary_frames},
    {"boundary_bytes", gauge.boundary_bytes},
    {"refused_frames", gauge.refused_frames},
    {"faults", gauge.faults},
  };
}

ordered_json conductor_json(const actors::conductor_gauge& gauge) {
  return {
    {"queued", gauge.queued},
    {"running", gauge.running},
    {"finished", gauge.finished},
    {"failed", gauge.failed},
    {"cancelled", gauge.cancelled},
    {"prompt_tokens", gauge.prompt_tokens},
    {"answer_tokens", gauge.answer_tokens},
    {"steps", gauge.steps},
    {"steps_in_flight", gauge.steps_in_flight},
    {"pages_total", gauge.pages_total},
    {"pages_used", gauge.pages_used},
  };
}

} // namespace

std::string status_json(const actors::cluster_status& status) {
  auto nodes = ordered_json::array();
  for (const auto& node : status.nodes)
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"state", node.state},
                     {"reason", node.reason}});
  auto ranks = ordered_json::array();
  for (const auto& rank : status.ranks)
    ranks.push_back(rank_json(rank));
  const ordered_json whole{
    {"cluster", status.cluster},
    {"phase", status.phase},
    {"reason", status.reason},
    {"epoch", number(status.epoch)},
    {"uptime_ms", status.uptime_ms},
    {"nodes", std::move(nodes)},
    {"ranks", std::move(ranks)},
    {"conductor", conductor_json(status.conductor)},
  };
  return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
