#include "actors/conductor/schedule.hpp"

#include "actors/rank/boundary_log.hpp"

#include "compute/batch.hpp"
#include "config/errc.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

schedule::schedule(const schedule_limits& limits) : limits_(limits), pages_(limits.pages) {
  check(limits.max_rows >= 1 && limits.prefill_chunk >= 1, "a step has room for a row");
  check(limits.micro_batches >= 1, "at least one step is in flight");
  check(limits.stages >= 1, "a step runs on a stage");
  for (std::size_t i = limits.max_sequences; i-- > 0;)
    free_slots_.push_back(static_cast<slot_id>(i));
}

result<void> schedule::submit(sequence_wish wish) {
  if (wish.prompt.empty())
    return error{errc::invalid_argument, "the prompt has no tokens; at least one is needed"};
  if (wish.max_tokens == 0)
    return error{errc::invalid_argument, "max tokens is 0; at least 1 is needed"};
  const auto total = wish.prompt.size() + wish.max_tokens;
  if (wish.prompt.size() >= limits_.context)
    return error{errc::invalid_argument,
                 fmt::format("the prompt has {} tokens, but the context holds {} with the answer",
                             wish.prompt.size(),
                             limits_.context)};
  const auto bounded = std::min(total, limits_.context);
  if (compute::pages_for(bounded) > pages_.total())
    return error{errc::invalid_argument,
                 fmt::format("prompt and answer need {} pages of state, but there are {} in all; "
                             "at most {} tokens fit",
                             compute::pages_for(bounded),
                             pages_.total(),
                             pages_.total() * compute::kv_page_tokens)};
  wish.max_tokens = bounded - wish.prompt.size();
  sequence made;
  made.tokens = wish.prompt;
  made.wish = std::move(wish);
  waiting_.push_back(std::move(made));
  admit(); // what can start now does not wait, and needs no room in the queue
  if (waiting_.size() <= limits_.max_queue)
    return {};
  waiting_.pop_back();
  return error{errc::overloaded,
               fmt::format("{} requests are waiting already (schedule.queue); try again later",
                           waiting_.size())};
}

void schedule::resume(sequence_wish wish, std::span<const token_id> answer) {
  const auto room = limits_.context - std::min(limits_.context, wish.prompt.size());
  wish.max_tokens = std::min(wish.max_tokens, room);
  sequence made;
  made.tokens = wish.prompt;
  made.tokens.insert(made.tokens.end(), answer.begin(), answer.end());
  made.wish = std::move(wish);
  waiting_.push_back(std::move(made));
}

void schedule::admit() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    auto& next = waiting_.front();
    const auto tokens = next.wish.prompt.size() + next.wish.max_tokens;
    auto pages = pages_.take(compute::pages_for(tokens));
    if (!pages)
      return; // in order: a small request does not overtake a large one for ever
    const auto slot = free_slots_.back();
    free_slots_.pop_back();
    next.slot = slot;
    next.pages = std::move(*pages);
    next.held.assign(limits_.stages, {});
    live_.emplace(slot, std::move(next));
    order_.push_back(slot);
    waiting_.pop_front();
  }
}

/// What ranks have to know of a slot, once in an epoch.
void schedule::introduce(step_entry& entry, sequence& which) {
  entry.pages = which.pages;
  entry.label = which.wish.label;
  which.introduced = true;
  if (!which.wish.rules)
    return;
  entry.rules.push_back(*which.wish.rules);
  if (!which.wish.rules->schema.empty())
    entry.rules.back().so_far.assign(which.tokens.begin()
                                       + static_cast<std::ptrdiff_t>(which.wish.prompt.size()),
                                     which.tokens.end());
}

void schedule::add_entry(next_step& step, flight& record, sequence& which, std::size_t count) {
  step_entry entry;
  entry.slot = which.slot;
  entry.request = which.wish.id;
  entry.position = static_cast<std::uint32_t>(which.planned);
  entry.count = static_cast<std::uint32_t>(count);
  if (!which.introduced)
    introduce(entry, which);
  const bool last = which.planned + count == which.tokens.size();
  if (last) {
    entry.flags |= step_entry::wants_output;
    entry.sampling = which.wish.sampling;
    if (which.wish.with_digests)
      entry.flags |= step_entry::wants_digest;
    if (which.wish.with_logprobs)
      entry.flags |= step_entry::wants_logprob;
    const auto& wish = which.wish.sampling;
    if (wish.repetition_penalty != 1.0f || wish.frequency_penalty != 0.0f
        || wish.presence_penalty != 0.0f)
      entry.history = which.tokens;
    which.output_in_flight = true;
    record.outputs.push_back(which.slot);
  }
  step.tokens.insert(step.tokens.end(),
                     which.tokens.begin() + static_cast<std::ptrdiff_t>(which.planned),
                     which.tokens.begin() + static_cast<std::ptrdiff_t>(which.planned + count));
  record.touched.push_back({which.slot, {which.planned, which.planned + count}});
  which.planned += count;
  ++which.steps_in_flight;
  step.plan.entries.push_back(std::move(entry));
}

void schedule::add_decode_rows(next_step& step, flight& record) {
  std::size_t decoding = 0;
  bool prompts = false;
  for (const auto slot : order_) {
    const auto& which = live_.at(slot);
    decoding += which.decoding() ? 1 : 0;
    prompts = prompts || (!which.cancelled && which.planned < which.wish.prompt.size());
  }
  // Answers that would fill every step leave a row (or, where there is but one, every other step)
  // to prompts: these would wait until an answer ends.
  const auto left = !prompts ? 0 : limits_.max_rows > 1 ? 1 : next_step_ % 2;
  // An even share for each step in flight, so that no stage idles while another works.
  const auto share = (decoding + limits_.micro_batches - 1) / limits_.micro_batches;
  const auto most = std::min(share, limits_.max_rows - left);
  const auto begin = turn_;
  for (std::size_t i = 0; i < order_.size() && step.tokens.size() < most; ++i) {
    const auto at = (begin + i) % order_.size();
    auto& which = live_.at(order_[at]);
    if (!which.decoding() || which.output_in_flight || which.cancelled || which.lags())
      continue;
    add_entry(step, record, which, 1);
    turn_ = at + 1;
  }
}

/// Rows of prompts in a step at most. One step after the other takes all that has room; where
/// several are in flight, a step that took all would leave the other stages idle. The less is left,
/// the smaller are the steps, down to a chunk.
std::size_t schedule::prompt_share() const {
  constexpr std::size_t turns = 4; // of each step in flight: a ninth of two stages' time is idle
  if (limits_.micro_batches == 1)
    return limits_.max_rows;
  std::size_t rows = 0; // under way as well
  for (const auto& [slot, which] : live_)
    if (const auto left = which.tokens.size() - which.committed; left > 1 && !which.cancelled)
      rows += left;
  const auto steps = turns * limits_.micro_batches;
  return std::max((rows + steps - 1) / steps, limits_.prefill_chunk);
}

void schedule::add_prompt_rows(next_step& step, flight& record) {
  auto share = prompt_share();
  for (const auto slot : order_) {
    auto& which = live_.at(slot);
    if (which.decoding() || which.cancelled || which.planned >= which.tokens.size() || which.lags())
      continue;
    const auto room = std::min(limits_.max_rows - step.tokens.size(), share);
    if (room == 0)
      return;
    const auto left = which.tokens.size() - which.planned;
    const auto count = std::min({left, room, limits_.prefill_chunk});
    add_entry(step, record, which, count);
    share -= count;
  }
}

// -- steps ----------------------------------------------------------------------------------------

std::size_t schedule::ordinary_in_flight() const {
  return static_cast<std::size_t>(std::count_if(
    in_flight_.begin(), in_flight_.end(), [](const auto& one) { return !one.replay(); }));
}

/// The least number that no ordinary step in flight has.
std::uint32_t schedule::free_micro_batch() const {
  std::uint32_t number = 0;
  const auto taken = [&](const flight& one) { return !one.replay() && one.micro_batch == number; };
  while (std::any_of(in_flight_.begin(), in_flight_.end(), taken))
    ++number;
  return number;
}

next_step schedule::number_step(next_step step, flight record, epoch_id epoch) {
  step.plan.epoch = epoch;
  step.plan.step = static_cast<step_id>(next_step_++);
  record.step = step.plan.step;
  if (!record.replay())
    step.plan.micro_batch = record.micro_batch = free_micro_batch();
  in_flight_.push_back(std::move(record));
  return step;
}

std::optional<next_step> schedule::plan_step(epoch_id epoch) {
  if (auto replay = plan_replay(epoch))
    return replay;
  if (ordinary_in_flight() >= limits_.micro_batches)
    return std::nullopt;
  admit();
  next_step step;
  flight record;
  add_decode_rows(step, record);
  add_prompt_rows(step, record);
  if (step.plan.entries.empty())
    return std::nullopt;
  step.plan.released = std::exchange(released_, {});
  return number_step(std::move(step), std::move(record), epoch);
}

void schedule::release(slot_id slot) {
  auto found = live_.find(slot);
  check(found != live_.end(), "a slot that ends is live");
  pages_.give_back(found->second.pages);
  if (found->second.introduced)
    released_.push_back(slot);
  live_.erase(found);
  order_.erase(std::find(order_.begin(), order_.end(), slot));
  free_slots_.push_back(slot);
}

committed_token schedule::take_token(sequence& which, const token_choice& choice) {
  committed_token given;
  given.id = which.wish.id;
  given.token = choice.token;
  given.logprob = choice.logprob;
  given.digest = choice.digest;
  given.top = choice.top;
  if (choice.code != 0) {
    given.ended = sequence_end::failed;
    given.code = static_cast<std::uint8_t>(choice.code - 1);
    return given;
  }
  which.tokens.push_back(choice.token);
  const auto& ends = which.wish.end_tokens;
  if (std::find(ends.begin(), ends.end(), choice.token) != ends.end())
    given.ended = sequence_end::end_token;
  else if (which.tokens.size() - which.wish.prompt.size() >= which.wish.max_tokens)
    given.ended = sequence_end::length;
  return given;
}

result<schedule::flight> schedule::take_flight(const step_output& output) {
  // A replay may end on an earlier stage than ordinary steps do, so these two orders are
  // independent: it may come before a step that was planned before it.
  auto found = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const auto& one) {
    return one.replay() && one.step == output.step;
  });
  if (found == in_flight_.end())
    found = std::find_if(
      in_flight_.begin(), in_flight_.end(), [](const auto& one) { return !one.replay(); });
  if (found == in_flight_.end() || found->step != output.step)
    return error{errc::contract_violation,
                 fmt::format("the output of step {} arrived where step {} was due",
                             number(output.step),
                             found == in_flight_.end() ? 0 : number(found->step))};
  auto record = std::move(*found);
  in_flight_.erase(found);
  if (record.outputs.size() != output.choices.size())
    return error{errc::contract_violation,
                 fmt::format("the output of step {} has {} tokens where {} were asked for",
                             number(output.step),
                             output.choices.size(),
                             record.outputs.size())};
  return record;
}

/// The stages of the step have its positions in their state now, and all but the last one the rows.
void schedule::advance(const flight& record) {
  const auto stages = record.replay() ? record.stages : range{0, limits_.stages};
  for (const auto& one : record.touched) {
    auto& which = live_.at(one.slot);
    --which.steps_in_flight;
    if (!record.replay())
      which.committed = one.positions.end;
    for (auto stage = stages.begin; stage < stages.end; ++stage) {
      auto& held = which.held[stage];
      held.positions = std::max(held.positions, one.positions.end);
      if (limits_.keeps_boundaries && stage + 1 < limits_.stages)
        held.rows = join_rows(held.rows, one.positions);
    }
  }
}

result<std::vector<committed_token>> schedule::commit(const step_output& output) {
  auto record = take_flight(output);
  if (!record)
    return record.error();
  advance(*record);
  std::vector<committed_token> given;
  for (std::size_t i = 0; i < output.choices.size(); ++i) {
    const auto slot = record->outputs[i];
    if (output.choices[i].slot != slot)
      return error{errc::contract_violation,
                   fmt::format("the output of step {} names slot {} where slot {} was due",
                               number(output.step),
                               number(output.choices[i].slot),
                               number(slot))};
    auto& which = live_.at(slot);
    which.output_in_flight = false;
    if (which.cancelled)
      continue;
    given.push_back(take_token(which, output.choices[i]));
    if (given.back().ended != sequence_end::none)
      which.cancelled = true;
  }
  for (const auto& one : record->touched)
    if (const auto& which = live_.at(one.slot); which.cancelled && which.steps_in_flight == 0)
      release(one.slot);
  return given;
}

bool schedule::cancel(request_id id) {
  const auto queued = std::find_if(
    waiting_.begin(), waiting_.end(), [id](const auto& one) { return one.wish.id == id; });
  if (queued != waiting_.end()) {
    waiting_.erase(queued);
    return true;
  }
  for (auto& [slot, which] : live_) {
    if (which.wish.id != id || which.cancelled)
      continue;
    which.cancelled = true;
    if (which.steps_in_flight == 0)
      release(slot);
    return true;
  }
  return false;
}

std::vector<slot_id> schedule::take_idle_releases() {
  const bool step_due = std::any_of(
    live_.begin(), live_.end(), [](const auto& entry) { return !entry.second.cancelled; });
  if (step_due || !waiting_.empty())
    return {};
  return std::exchange(released_, {});
}

std::vector<request_id> schedule::clear() {
  std::vector<request_id> ids;
  for (const auto slot : order_)
    if (!live_.at(slot).cancelled)
      ids.push_back(live_.at(slot).wish.id);
  for (const auto& one : waiting_)
    ids.push_back(one.wish.id);
  const auto step = next_step_;
  *this = schedule{limits_};
  next_step_ = step;
  return ids;
}

} // namespace troupe::actors
