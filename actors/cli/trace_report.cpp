#include "actors/cli/trace_report.hpp"

#include "actors/conductor/conductor.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace troupe::cli {

using actors::trace_kind;
using actors::trace_part;
using actors::trace_report;
using actors::trace_span;
using actors::traced_step;
using nlohmann::ordered_json;

namespace {

bool is_conductor(const trace_part& part) {
  return part.rank == actors::conductor_rank;
}

/// The first span of a step is the whole of it.
const trace_span& whole(const traced_step& step) {
  return step.spans.front();
}

std::uint64_t first_time(const trace_report& report) {
  auto first = std::numeric_limits<std::uint64_t>::max();
  for (const auto& part : report.parts)
    for (const auto& step : part.steps)
      first = std::min(first, whole(step).begin_ns);
  return first;
}

/// Processes in the order in which they are shown: the conductor, then ranks.
std::uint64_t process_of(const trace_part& part) {
  return is_conductor(part) ? 0 : std::uint64_t{number(part.rank)} + 1;
}

std::string name_of(const trace_part& part) {
  return is_conductor(part)
           ? "conductor"
           : fmt::format("rank {}, stage {}, node {}", number(part.rank), part.stage, part.node);
}

std::string name_of(const traced_step& step, const trace_span& span) {
  switch (span.kind) {
  case trace_kind::step:
    return fmt::format("{} {}", step.replay != 0 ? "replay" : "step", number(step.step));
  case trace_kind::layer: return fmt::format("layer {}", span.detail);
  case trace_kind::collective: return "collective";
  case trace_kind::finish: return "finish";
  case trace_kind::send: return "send";
  }
  return "unknown";
}

const char* category_of(trace_kind kind) {
  switch (kind) {
  case trace_kind::step: return "step";
  case trace_kind::collective: return "collective";
  case trace_kind::send: return "send";
  default: return "compute";
  }
}

ordered_json metadata(const char* what, const trace_part& part, ordered_json args) {
  return {
    {"name", what}, {"ph", "M"}, {"pid", process_of(part)}, {"tid", 0}, {"args", std::move(args)}};
}

ordered_json event_of(const trace_part& part,
                      const traced_step& step,
                      const trace_span& span,
                      std::uint64_t zero) {
  constexpr double us = 1e3; // nanoseconds
  auto requests = ordered_json::array();
  for (const auto request : step.requests)
    requests.push_back(number(request));
  ordered_json args{{"epoch", number(step.epoch)},
                    {"step", number(step.step)},
                    {"micro_batch", step.micro_batch},
                    {"rows", step.rows},
                    {"requests", std::move(requests)}};
  if (span.kind == trace_kind::collective)
    args["elements"] = span.detail;
  if (span.kind == trace_kind::send)
    args["bytes"] = span.detail;
  return {{"name", name_of(step, span)},
          {"cat", category_of(span.kind)},
          {"ph", "X"},
          {"pid", process_of(part)},
          {"tid", is_conductor(part) ? step.micro_batch : 0},
          {"ts", static_cast<double>(span.begin_ns - zero) / us},
          {"dur", static_cast<double>(span.end_ns - span.begin_ns) / us},
          {"args", std::move(args)}};
}

} // namespace

void cut_to_common_steps(trace_report& report, std::uint32_t steps) {
  std::uint64_t first = 0;
  for (const auto& part : report.parts)
    if (!part.steps.empty())
      first = std::max(first, number(part.steps.front().step));
  std::set<std::uint64_t> kept;
  for (const auto& part : report.parts)
    for (const auto& step : part.steps)
      if (number(step.step) >= first)
        kept.insert(number(step.step));
  while (kept.size() > steps)
    kept.erase(std::prev(kept.end()));
  for (auto& part : report.parts)
    std::erase_if(part.steps,
                  [&](const traced_step& step) { return !kept.contains(number(step.step)); });
}

std::string trace_json(const trace_report& report) {
  const auto zero = first_time(report);
  auto events = ordered_json::array();
  for (const auto& part : report.parts) {
    events.push_back(metadata("process_name", part, {{"name", name_of(part)}}));
    events.push_back(metadata("process_sort_index", part, {{"sort_index", process_of(part)}}));
    for (const auto& step : part.steps)
      for (const auto& span : step.spans)
        events.push_back(event_of(part, step, span, zero));
  }
  auto clocks = ordered_json::object();
  for (const auto& part : report.parts)
    if (!is_conductor(part))
      clocks[part.node] = static_cast<double>(part.uncertain_ns) / 1e3;
  const ordered_json made{
    {"displayTimeUnit", "ms"},
    {"otherData", {{"cluster", report.cluster}, {"clocks_uncertain_us", std::move(clocks)}}},
    {"traceEvents", std::move(events)}};
  return made.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

trace_summary summarise(const trace_report& report) {
  trace_summary made;
  const auto begin = first_time(report);
  auto end = begin;
  for (const auto& part : report.parts)
    if (!is_conductor(part) && !part.steps.empty())
      end = std::max(end, whole(part.steps.back()).end_ns);
  const auto all_ns = static_cast<double>(std::max<std::uint64_t>(end - begin, 1));
  made.seconds = all_ns / 1e9;
  for (const auto& part : report.parts) {
    made.uncertain_ms = std::max(made.uncertain_ms, static_cast<double>(part.uncertain_ns) / 1e6);
    if (is_conductor(part))
      continue;
    rank_use use{part.rank, part.stage, part.steps.size(), 0, 0};
    for (const auto& step : part.steps)
      for (const auto& span : step.spans) {
        const auto share = static_cast<double>(span.end_ns - span.begin_ns) / all_ns;
        if (span.kind == trace_kind::step)
          use.busy += share;
        else if (span.kind == trace_kind::collective)
          use.collective += share;
      }
    made.steps = std::max(made.steps, use.steps);
    made.ranks.push_back(use);
  }
  return made;
}

} // namespace troupe::cli
