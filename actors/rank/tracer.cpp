#include "actors/rank/tracer.hpp"

#include <utility>

namespace troupe::actors {

void tracer::start(const trace_order& order) {
  if (order.steps == 0) {
    over_ = order.serial == serial_;
    left_ = 0;
    return;
  }
  *this = {};
  serial_ = order.serial;
  left_ = order.steps;
  made_.serial = order.serial;
}

void tracer::begin(const step_plan& plan, time_point at) {
  if (left_ == 0)
    return;
  --left_;
  traced_step noted;
  noted.epoch = plan.epoch;
  noted.step = plan.step;
  noted.micro_batch = plan.micro_batch;
  noted.rows = plan.rows();
  noted.replay = plan.replay() ? 1 : 0;
  for (const auto& entry : plan.entries)
    noted.requests.push_back(entry.request);
  noted.spans.push_back({trace_kind::step, steady_ns(at), 0, 0});
  last_ = plan.step;
  open_.insert_or_assign(plan.step, std::move(noted));
}

void tracer::add(trace_kind kind, time_point begin, time_point end, std::uint64_t detail) {
  if (const auto found = open_.find(last_); found != open_.end())
    found->second.spans.push_back({kind, steady_ns(begin), steady_ns(end), detail});
}

void tracer::end(step_id step, time_point at) {
  auto ended = open_.extract(step);
  if (ended.empty())
    return;
  ended.mapped().spans.front().end_ns = steady_ns(at);
  made_.steps.push_back(std::move(ended.mapped()));
}

std::optional<trace_part> tracer::take() {
  if (!on() || left_ > 0 || (!open_.empty() && !over_))
    return std::nullopt;
  auto whole = std::move(made_);
  *this = {};
  return whole;
}

} // namespace troupe::actors
