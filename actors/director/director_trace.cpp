// A trace of the next steps (`troupe trace`): asked of all ranks, gathered, answered once.

#include "actors/control/system.hpp"
#include "actors/director/director_state.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

using milliseconds = std::chrono::milliseconds;

/// Ranks hand over what they have so long before the client is answered.
constexpr milliseconds last_call{500};

constexpr std::uint32_t most_steps = 10'000;

} // namespace

caf::result<trace_report> director_state::take(const trace_order& order) {
  if (order.steps == 0 || order.steps > most_steps)
    return to_caf({errc::invalid_argument,
                   fmt::format("{} steps were asked for; from 1 to {} can be traced",
                               order.steps,
                               most_steps)});
  if (trace_)
    return to_caf({errc::not_now, "another trace is under way"});
  if (phase_ != director_phase::serving)
    return to_caf(
      {errc::not_now,
       fmt::format("the cluster does not serve now: it is {}", director_phases.name(phase_))});
  trace_.emplace();
  auto& trace = *trace_;
  trace.order = order;
  trace.order.serial = ++last_trace_;
  trace.until = clock::now() + milliseconds(order.patience_ms);
  trace.report.cluster = settings_.cluster.name;
  trace.answer = self_->make_response_promise<trace_report>();
  ask_for_trace(trace.order);
  return trace.answer;
}

void director_state::ask_for_trace(const trace_order& order) {
  for (const auto& member : members_->members())
    if (member.handle)
      self_->send(*member.handle, order);
  self_->send(setup_.conductor->handle, order);
}

void director_state::take(const trace_part& part) {
  if (!trace_ || trace_->order.serial != part.serial)
    return;
  auto& parts = trace_->report.parts;
  parts.push_back(part);
  if (parts.size() == plan_.ranks.size() + 1) // and the conductor
    answer_trace();
}

void director_state::look_at_trace(clock::time_point now) {
  if (!trace_ || now < trace_->until)
    return;
  if (trace_->order.steps == 0)
    return answer_trace();
  trace_->order.steps = 0;
  trace_->until = now + last_call;
  ask_for_trace(trace_->order);
}

void director_state::answer_trace() {
  auto& parts = trace_->report.parts;
  std::sort(parts.begin(), parts.end(), [](const auto& one, const auto& other) {
    return number(one.rank) < number(other.rank);
  });
  trace_->answer.deliver(std::move(trace_->report));
  trace_.reset();
}

} // namespace troupe::actors
