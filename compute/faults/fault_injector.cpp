#include "compute/faults/fault_injector.hpp"

#include "compute/faults/standstill.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::compute {

namespace {

/// A pause that is longer was no step, but idleness.
constexpr std::chrono::seconds longest_step{1};

bool meets_thread(fault_action what) {
  return what <= fault_action::slow;
}

bool meets_frame(fault_action what) {
  return what >= fault_action::drop && what <= fault_action::cut;
}

bool meets_collective(fault_action what) {
  return what >= fault_action::wrong_length && what <= fault_action::fail_collective;
}

bool meets_allocation(fault_action what) {
  return what == fault_action::refuse_allocation;
}

bool meets_transport(fault_action what) {
  return what == fault_action::fail_transport;
}

bool concerns(const fault_spot& spot, std::uint32_t peer) {
  return !spot.to || *spot.to == peer;
}

} // namespace

fault_injector::fault_injector(std::uint32_t self,
                               const std::vector<fault>& faults,
                               fault_trace trace)
  : self_(self), trace_(std::move(trace)) {
  for (const auto& one : faults)
    add(one);
}

fault_injector::~fault_injector() {
  name_missed();
}

void fault_injector::name_missed() const {
  for (const auto& one : armed_)
    if (one.before + one.here == 0)
      log::warn("{} {} at {} never happened: its moment did not come",
                one.what.name,
                to_string(one.what.what),
                name_spot(one.spot));
}

void fault_injector::add(const fault& what) {
  known_.push_back(what);
  arm(what);
}

void fault_injector::move_to(std::uint32_t self) {
  if (self == self_)
    return;
  name_missed();
  self_ = self;
  armed_.clear();
  for (const auto& one : known_)
    arm(one);
}

void fault_injector::arm(const fault& what) {
  for (const auto& spot : what.spots) {
    if (spot.at != self_)
      continue;
    armed added{what, spot};
    added.threshold = what.when.event == fault_event::load ? 1 : what.when.count;
    added.before = what.injected ? 0 : trace_.count(what, spot);
    armed_.push_back(std::move(added));
  }
}

// -- events ---------------------------------------------------------------------------------------

template <class Matches>
void fault_injector::count(fault_event event, Matches matches) {
  for (auto& one : armed_)
    if (one.what.when.event == event && matches(one))
      ++one.seen;
}

void fault_injector::count_call(bool (*meets)(fault_action)) {
  count(fault_event::call, [&](const armed& one) { return meets(one.what.what); });
}

void fault_injector::begin_step() {
  const auto begun = clock::now();
  if (step_begun_ && begun - *step_begun_ < longest_step) {
    step_time_ += begun - *step_begun_;
    ++steps_timed_;
  }
  step_begun_ = begun;
  ++steps_;
  layer_.reset();
  if (slow_until_ && steps_ >= *slow_until_)
    slow_factor_ = 1;
  std::erase_if(cuts_, [this](const auto& cut) { return cut.second && steps_ >= *cut.second; });
  count(fault_event::step, [](const armed& one) { return !one.what.when.layer; });
  act_on_thread();
}

void fault_injector::begin_layer(std::uint64_t layer) {
  layer_ = layer;
  count(fault_event::step, [&](const armed& one) { return one.what.when.layer == layer; });
  act_on_thread();
}

void fault_injector::end_layer(std::chrono::nanoseconds took) {
  if (slow_factor_ > 1)
    stand_still(std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<double>(took.count())
                                                                   * (slow_factor_ - 1))},
                released_);
}

void fault_injector::enter_phase(std::string_view name) {
  phase_ = name;
  count(fault_event::phase, [&](const armed& one) { return one.what.when.phase == name; });
  act_on_thread();
}

void fault_injector::begin_load() {
  loading_ = true;
  percent_ = 0;
  count(fault_event::load, [](const armed& one) { return one.what.when.count == 0; });
  act_on_thread();
}

void fault_injector::load(std::uint64_t done, std::uint64_t total) {
  const auto percent = total == 0 ? 100 : done * 100 / total;
  if (!loading_ || percent <= percent_)
    return;
  count(fault_event::load, [&](const armed& one) {
    return one.what.when.count > percent_ && one.what.when.count <= percent;
  });
  percent_ = percent;
  loading_ = percent < 100;
  act_on_thread();
}

// -- what meets a thread --------------------------------------------------------------------------

void fault_injector::act_on_thread() {
  for (auto& one : armed_)
    if (meets_thread(one.what.what) && one.due())
      make(one);
}

void fault_injector::make(armed& which) {
  trace_.add(which.what, which.spot, now());
  ++which.here;
  made_.store(made_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  perform(which.what);
}

void fault_injector::perform(const fault& what) {
  switch (what.what) {
  case fault_action::kill: kill_process();
  case fault_action::stop:
    if (what.whole_process)
      stop_process(duration(what));
    else
      stand_still(duration(what), released_);
    step_begun_.reset();
    break;
  case fault_action::slow:
    slow_factor_ = what.factor;
    slow_until_ = what.steps > 0 ? std::optional{steps_ + what.steps} : std::nullopt;
    break;
  default: break; // Met by whoever asked.
  }
}

std::optional<std::chrono::nanoseconds> fault_injector::duration(const fault& what) const {
  if (what.steps == 0)
    return std::nullopt;
  constexpr std::chrono::nanoseconds least = std::chrono::milliseconds{1};
  const auto mean =
    steps_timed_ == 0 ? least : step_time_ / static_cast<std::int64_t>(steps_timed_);
  return std::max(mean, least) * static_cast<std::int64_t>(what.steps);
}

std::string fault_injector::now() const {
  auto text = fmt::format("step {}", steps_);
  if (layer_)
    text += fmt::format(" layer {}", *layer_);
  if (loading_)
    text += fmt::format(" load {} %", percent_);
  return text + fmt::format(" message {} phase {}", messages_, phase_.empty() ? "none" : phase_);
}

// -- what the decorators ask ----------------------------------------------------------------------

std::vector<fault> fault_injector::meet_frame(std::uint32_t peer) {
  ++messages_;
  count(fault_event::message, [&](const armed& one) { return concerns(one.spot, peer); });
  act_on_thread();
  std::vector<fault> met;
  for (auto& one : armed_) {
    if (!meets_frame(one.what.what) || !concerns(one.spot, peer) || !one.due())
      continue;
    make(one);
    if (one.what.what == fault_action::cut)
      cuts_[peer] = one.what.steps > 0 ? std::optional{steps_ + one.what.steps} : std::nullopt;
    met.push_back(one.what);
  }
  return met;
}

bool fault_injector::is_cut(std::uint32_t peer) const {
  return cuts_.contains(peer);
}

bool fault_injector::refuses_transport(std::uint32_t peer) {
  count_call(meets_transport);
  for (auto& one : armed_) {
    if (!meets_transport(one.what.what) || !concerns(one.spot, peer) || !one.due())
      continue;
    make(one);
    return true;
  }
  return false;
}

bool fault_injector::refuses_allocation() {
  count_call(meets_allocation);
  for (auto& one : armed_) {
    if (!meets_allocation(one.what.what) || !one.due())
      continue;
    make(one);
    return true;
  }
  return false;
}

std::optional<std::uint64_t> fault_injector::spoils_activation() {
  for (auto& one : armed_) {
    if (one.what.what != fault_action::nan || !one.due())
      continue;
    make(one);
    return draw(one.what.seed, one.here);
  }
  return std::nullopt;
}

std::optional<fault> fault_injector::meet_collective() {
  count_call(meets_collective);
  for (auto& one : armed_) {
    if (!meets_collective(one.what.what) || !one.due())
      continue;
    make(one);
    return one.what;
  }
  return std::nullopt;
}

} // namespace troupe::compute
