#include "actors/serve/metrics.hpp"

#include "actors/histogram.hpp"
#include "actors/rank/rank_phases.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <utility>
#include <vector>

namespace troupe::actors::serve {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using labels = std::vector<ClientMetric::Label>;

// In a second; divided by, so that 100 ms are 0.1 s to the last bit.
constexpr double us = 1e6;
constexpr double ns = 1e9;

/// Families in the order in which they are added.
class exposition {
public:
  void begin(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }

  /// Of the family that was begun last.
  void add(double value, labels which = {}) {
    auto& family = families_.back();
    ClientMetric made;
    made.label = std::move(which);
    if (family.type == MetricType::Counter)
      made.counter.value = value;
    else
      made.gauge.value = value;
    family.metric.push_back(std::move(made));
  }

  void gauge(std::string name, std::string help, double value) {
    begin(std::move(name), std::move(help), MetricType::Gauge);
    add(value);
  }

  void counter(std::string name, std::string help, std::uint64_t value) {
    begin(std::move(name), std::move(help), MetricType::Counter);
    add(static_cast<double>(value));
  }

  /// `per_unit`: of the tally's values in one of the metric's.
  template <std::size_t Bounds>
  void distribution(std::string name,
                    std::string help,
                    const tally& told,
                    const std::array<std::uint64_t, Bounds>& bounds,
                    double per_unit) {
    begin(std::move(name), std::move(help), MetricType::Histogram);
    ClientMetric made;
    auto& to = made.histogram;
    for (std::size_t i = 0; i < told.counts.size(); ++i) {
      to.sample_count += told.counts[i];
      if (i < bounds.size())
        to.bucket.push_back({to.sample_count, static_cast<double>(bounds[i]) / per_unit});
    }
    to.sample_sum = static_cast<double>(told.sum) / per_unit;
    families_.back().metric.push_back(std::move(made));
  }

  std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer{}.Serialize(out, families_);
    return std::move(out).str();
  }

private:
  std::vector<MetricFamily> families_;
};

void add_cluster(exposition& to, const cluster_status& known, const server_facts& server) {
  to.begin("troupe_info", "1; what serves", MetricType::Gauge);
  to.add(1, {{"cluster", known.cluster}, {"model", server.model}});
  to.gauge("troupe_ready", "1 while requests are served", server.ready ? 1 : 0);
  to.gauge("troupe_epoch", "The present epoch", static_cast<double>(number(known.epoch)));
  to.counter("troupe_epochs_lost_total", "Epochs that ended by a fault", known.epochs_lost);
  to.counter("troupe_recoveries_total", "Times that the cluster served again", known.recoveries);
  to.gauge("troupe_uptime_seconds", "Of the head", static_cast<double>(known.uptime_ms) / 1000);
  to.begin("troupe_node_joined", "1 while the node is here", MetricType::Gauge);
  for (const auto& node : known.nodes)
    to.add(node.state == "missing" || node.state == "lost" ? 0 : 1, {{"node", node.name}});
}

void add_requests(exposition& to, const conductor_gauge& told) {
  to.begin("troupe_requests_total", "Requests by outcome", MetricType::Counter);
  for (const auto& [outcome, count] : {std::pair{"finished", told.finished},
                                       {"failed", told.failed},
                                       {"cancelled", told.cancelled},
                                       {"refused", told.refused}})
    to.add(static_cast<double>(count), {{"outcome", outcome}});
  to.gauge("troupe_requests_queued", "Requests that wait", static_cast<double>(told.queued));
  to.gauge("troupe_requests_running", "Requests that run", static_cast<double>(told.running));
  to.counter("troupe_prompt_tokens_total", "Tokens of prompts", told.prompt_tokens);
  to.counter("troupe_answer_tokens_total", "Tokens of answers", told.answer_tokens);
  const auto& latencies = latency_bounds_us;
  to.distribution(
    "troupe_queue_seconds", "From a request to its first step", told.queued_us, latencies, us);
  to.distribution("troupe_first_token_seconds",
                  "From a request to its first token",
                  told.first_token_us,
                  latencies,
                  us);
  to.distribution("troupe_between_tokens_seconds",
                  "From a token to the next of its answer",
                  told.between_tokens_us,
                  latencies,
                  us);
  to.distribution(
    "troupe_request_seconds", "From a request to its end", told.whole_us, latencies, us);
}

void add_steps(exposition& to, const conductor_gauge& told) {
  to.counter("troupe_steps_total", "Steps planned", told.steps);
  to.gauge("troupe_steps_in_flight",
           "Steps under way, one a micro-batch",
           static_cast<double>(told.steps_in_flight));
  to.distribution("troupe_step_rows", "Rows of a micro-batch", told.step_rows, size_bounds, 1);
  to.distribution("troupe_step_requests",
                  "Requests with rows in a micro-batch",
                  told.step_requests,
                  size_bounds,
                  1);
  to.gauge("troupe_state_pages", "Pages of state a rank", static_cast<double>(told.pages_total));
  to.gauge(
    "troupe_state_pages_used", "Pages that requests hold", static_cast<double>(told.pages_used));
}

/// What is told of each rank, one row a metric.
struct rank_metric {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t rank_gauge::*field;
  double per_unit = 1;
};

constexpr rank_metric rank_metrics[]{
  {"troupe_rank_compute_seconds_total",
   "Time in layers, embedding and head, without collectives",
   MetricType::Counter,
   &rank_gauge::compute_ns,
   ns},
  {"troupe_rank_wait_seconds_total",
   "Time from the end of a step to the start of the next",
   MetricType::Counter,
   &rank_gauge::wait_ns,
   ns},
  {"troupe_rank_send_seconds_total",
   "Time in handing rows and choices to the wire",
   MetricType::Counter,
   &rank_gauge::send_ns,
   ns},
  {"troupe_rank_collective_seconds_total",
   "Time in collectives, waiting included",
   MetricType::Counter,
   &rank_gauge::collective_ns,
   ns},
  {"troupe_rank_steps_total", "Steps", MetricType::Counter, &rank_gauge::steps},
  {"troupe_rank_rows_total", "Rows computed", MetricType::Counter, &rank_gauge::rows},
  {"troupe_rank_rows_replayed_total",
   "Rows computed again to rebuild lost state",
   MetricType::Counter,
   &rank_gauge::rows_replayed},
  {"troupe_rank_rows_resent_total",
   "Rows sent again to a stage that lost its state",
   MetricType::Counter,
   &rank_gauge::rows_resent},
  {"troupe_rank_boundary_messages_total",
   "Partition inputs sent to the next stage",
   MetricType::Counter,
   &rank_gauge::boundary_frames},
  {"troupe_rank_boundary_bytes_total",
   "Their bytes, headers included",
   MetricType::Counter,
   &rank_gauge::boundary_bytes},
  {"troupe_rank_collectives_total",
   "Reductions, gathers and barriers",
   MetricType::Counter,
   &rank_gauge::collectives},
  {"troupe_rank_collective_bytes_total",
   "Bytes of their results on this rank",
   MetricType::Counter,
   &rank_gauge::collective_bytes},
  {"troupe_rank_frames_sent_total", "Frames", MetricType::Counter, &rank_gauge::frames_sent},
  {"troupe_rank_frames_received_total",
   "Frames",
   MetricType::Counter,
   &rank_gauge::frames_received},
  {"troupe_rank_payload_sent_bytes_total",
   "Bytes of frames without headers",
   MetricType::Counter,
   &rank_gauge::payload_bytes_sent},
  {"troupe_rank_frames_refused_total",
   "Malformed, damaged or repeated frames",
   MetricType::Counter,
   &rank_gauge::refused_frames},
  {"troupe_rank_frames_stale_total",
   "Messages of another epoch",
   MetricType::Counter,
   &rank_gauge::stale_frames},
  {"troupe_rank_tensor_copies_total",
   "Tensors that the transport copied",
   MetricType::Counter,
   &rank_gauge::tensor_copies},
  {"troupe_rank_faults_injected_total",
   "Faults that happened on purpose",
   MetricType::Counter,
   &rank_gauge::faults},
  {"troupe_rank_weight_bytes", "Weights in memory", MetricType::Gauge, &rank_gauge::bytes_held},
  {"troupe_rank_state_bytes", "State in memory", MetricType::Gauge, &rank_gauge::state_bytes},
  {"troupe_rank_load_done_bytes", "Loaded so far", MetricType::Gauge, &rank_gauge::load_done_bytes},
  {"troupe_rank_load_bytes", "To be loaded", MetricType::Gauge, &rank_gauge::load_total_bytes},
};

labels labels_of(const rank_status& rank) {
  return {{"rank", std::to_string(number(rank.gauge.rank))},
          {"stage", std::to_string(rank.stage)},
          {"tensor", std::to_string(rank.tensor)},
          {"node", rank.node}};
}

void add_ranks(exposition& to, const cluster_status& known) {
  for (const auto& one : rank_metrics) {
    to.begin(one.name, one.help, one.type);
    for (const auto& rank : known.ranks)
      to.add(static_cast<double>(rank.gauge.*one.field) / one.per_unit, labels_of(rank));
  }
  to.begin("troupe_rank_phase", "1 with the rank's present phase", MetricType::Gauge);
  for (const auto& rank : known.ranks) {
    auto which = labels_of(rank);
    const auto phase = rank.gauge.phase;
    which.push_back({"phase",
                     phase < rank_phases.phase_names.size()
                       ? std::string(rank_phases.phase_names[phase])
                       : std::to_string(phase)});
    to.add(1, std::move(which));
  }
  to.begin("troupe_rank_silent_seconds", "Since the last beat of its node", MetricType::Gauge);
  for (const auto& rank : known.ranks)
    to.add(static_cast<double>(rank.silent_ms) / 1000, labels_of(rank));
}

void add_http(exposition& to, const server_facts& server) {
  to.begin("troupe_http_answers_total", "Answers by path and status", MetricType::Counter);
  for (const auto& [which, count] : server.answers)
    if (which.second != 0)
      to.add(static_cast<double>(count),
             {{"path", which.first}, {"code", std::to_string(which.second)}});
  to.begin("troupe_http_left_total",
           "Clients that left, or were cut off, before their answer was complete",
           MetricType::Counter);
  for (const auto& [which, count] : server.answers)
    if (which.second == 0)
      to.add(static_cast<double>(count), {{"path", which.first}});
  to.gauge("troupe_http_connections", "Open now", static_cast<double>(server.connections));
}

/// Of the head's process, by the names that every exporter uses.
void add_process(exposition& to) {
  std::size_t descriptors = 0;
  std::error_code failure;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failure), end; !failure && at != end;
       at.increment(failure))
    ++descriptors;
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  to.gauge("process_open_fds", "Descriptors of the head", static_cast<double>(descriptors));
  to.gauge("process_resident_memory_bytes",
           "Of the head",
           static_cast<double>(resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

} // namespace

std::string metrics_text(const cluster_status& known, const server_facts& server) {
  exposition made;
  add_cluster(made, known, server);
  add_requests(made, known.conductor);
  add_steps(made, known.conductor);
  add_ranks(made, known);
  add_http(made, server);
  add_process(made);
  return made.text();
}

} // namespace troupe::actors::serve
