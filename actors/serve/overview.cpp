#include "actors/serve/overview.hpp"

#include "actors/histogram.hpp"
#include "actors/rank/rank_phases.hpp"

#include <nlohmann/json.hpp>

#include <chrono>

namespace troupe::actors::serve {

using nlohmann::ordered_json;

namespace {

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

ordered_json rank_json(const rank_status& rank) {
  const auto& gauge = rank.gauge;
  const bool known = gauge.phase < rank_phases.phase_names.size();
  return {{"rank", number(gauge.rank)},
          {"node", rank.node},
          {"stage", rank.stage},
          {"tensor", rank.tensor},
          {"layers", {rank.first_unit, rank.last_unit}},
          {"phase", known ? rank_phases.phase_names[gauge.phase] : "unknown"},
          {"epoch", number(gauge.epoch)},
          {"step", number(gauge.step)},
          {"silent_ms", rank.silent_ms},
          {"links", rank.links},
          {"load_done_bytes", gauge.load_done_bytes},
          {"load_total_bytes", gauge.load_total_bytes},
          {"weight_bytes", gauge.bytes_held},
          {"state_bytes", gauge.state_bytes},
          {"compute_ns", gauge.compute_ns},
          {"collective_ns", gauge.collective_ns},
          {"wait_ns", gauge.wait_ns},
          {"send_ns", gauge.send_ns},
          {"steps", gauge.steps},
          {"rows", gauge.rows},
          {"rows_replayed", gauge.rows_replayed},
          {"faults", gauge.faults}};
}

ordered_json requests_json(const conductor_gauge& told) {
  return {{"queued", told.queued},
          {"running", told.running},
          {"finished", told.finished},
          {"failed", told.failed},
          {"cancelled", told.cancelled},
          {"refused", told.refused},
          {"prompt_tokens", told.prompt_tokens},
          {"answer_tokens", told.answer_tokens},
          {"steps_in_flight", told.steps_in_flight},
          {"pages", told.pages_total},
          {"pages_used", told.pages_used},
          {"latency_bounds_us", latency_bounds_us},
          {"first_token_us", told.first_token_us.counts},
          {"between_tokens_us", told.between_tokens_us.counts}};
}

} // namespace

std::string overview_json(const cluster_status& known,
                          const cluster_pulse::beat& pulse,
                          const std::string& model) {
  auto nodes = ordered_json::array();
  for (const auto& node : known.nodes)
    nodes.push_back({{"name", node.name},
                     {"address", node.address},
                     {"state", node.state},
                     {"reason", node.reason}});
  auto ranks = ordered_json::array();
  for (const auto& rank : known.ranks)
    ranks.push_back(rank_json(rank));
  auto events = ordered_json::array();
  for (const auto& event : known.events)
    events.push_back({{"at_ms", event.at_ms}, {"what", event.what}, {"done", event.done}});
  const ordered_json whole{{"at_ms", unix_ms()},
                           {"cluster", known.cluster},
                           {"model", model},
                           {"phase", known.phase},
                           {"ready", pulse.ready},
                           {"reason", pulse.reason},
                           {"since_ms", pulse.since.count()},
                           {"epoch", number(known.epoch)},
                           {"uptime_ms", known.uptime_ms},
                           {"epochs_lost", known.epochs_lost},
                           {"recoveries", known.recoveries},
                           {"nodes", std::move(nodes)},
                           {"ranks", std::move(ranks)},
                           {"requests", requests_json(known.conductor)},
                           {"events", std::move(events)}};
  return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::actors::serve
