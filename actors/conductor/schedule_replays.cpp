// Faults and plans that change: what stages lack of live sequences, and how they get it.

#include "actors/conductor/schedule.hpp"
#include "actors/rank/boundary_log.hpp"
#include "compute/batch.hpp"

#include <algorithm>
#include <set>

namespace troupe::actors {

bool schedule::sequence::lags() const {
  return std::any_of(
    held.begin(), held.end(), [this](const auto& stage) { return stage.positions < committed; });
}

// -- replays -------------------------------------------------------------------------------------

/// The stages that have least, as far as they are neighbours, and what they lack, up to the end of
/// the rows that the stage before them keeps. Where it keeps none of them it computes them again,
/// and so on up to the first stage, which is fed with tokens.
schedule::gap schedule::next_gap(const sequence& which) const {
  const auto& held = which.held;
  const auto least = std::min_element(held.begin(), held.end(), [](const auto& a, const auto& b) {
    return a.positions < b.positions;
  });
  gap found;
  found.stages.begin = static_cast<std::size_t>(least - held.begin());
  found.stages.end = found.stages.begin;
  while (found.stages.end < held.size() && held[found.stages.end].positions == least->positions)
    ++found.stages.end;
  found.positions = {least->positions, which.committed};
  while (found.stages.begin > 0
         && !held[found.stages.begin - 1].rows.contains(found.positions.begin))
    --found.stages.begin;
  if (found.stages.begin > 0)
    found.positions.end = std::min(found.positions.end, held[found.stages.begin - 1].rows.end);
  return found;
}

std::optional<next_step> schedule::plan_replay(epoch_id epoch) {
  if (ordinary_in_flight() < in_flight_.size())
    return std::nullopt; // one at a time: the next one is cut by what this one gave back
  next_step step;
  flight record;
  for (const auto slot : order_) {
    auto& which = live_.at(slot);
    if (which.cancelled || !which.lags())
      continue;
    const auto lack = next_gap(which);
    const auto room = limits_.max_rows - step.plan.rows();
    if (room == 0 || (record.replay() && lack.stages != record.stages))
      continue;
    record.stages = lack.stages;
    const auto count = std::min(lack.positions.size(), room);
    const auto end = lack.positions.begin + count;
    step_entry entry;
    entry.slot = slot;
    entry.request = which.wish.id;
    entry.position = static_cast<std::uint32_t>(lack.positions.begin);
    entry.count = static_cast<std::uint32_t>(count);
    entry.pages = which.pages;
    if (lack.stages.begin == 0)
      step.tokens.insert(step.tokens.end(),
                         which.tokens.begin() + static_cast<std::ptrdiff_t>(lack.positions.begin),
                         which.tokens.begin() + static_cast<std::ptrdiff_t>(end));
    ++which.steps_in_flight;
    record.touched.push_back({slot, {lack.positions.begin, end}});
    step.plan.entries.push_back(std::move(entry));
  }
  if (!record.replay())
    return std::nullopt;
  step.plan.first_stage = static_cast<std::uint32_t>(record.stages.begin);
  step.plan.last_stage = static_cast<std::uint32_t>(record.stages.end);
  return number_step(std::move(step), std::move(record), epoch);
}

// -- between epochs ------------------------------------------------------------------------------

void schedule::interrupt() {
  in_flight_.clear();
  std::vector<slot_id> ended;
  for (auto& [slot, which] : live_) {
    which.planned = which.committed;
    which.output_in_flight = false;
    which.steps_in_flight = 0;
    which.introduced = false;
    if (which.cancelled)
      ended.push_back(slot);
  }
  for (const auto slot : ended)
    release(slot);
  released_.clear(); // a slot that comes again brings its pages
}

void schedule::lose(std::size_t stage) {
  check(in_flight_.empty(), "state is lost between epochs");
  check(stage < limits_.stages, "the stage is one of the plan");
  for (auto& [slot, which] : live_)
    which.held[stage] = {};
}

/// Whether a live sequence keeps its slot and pages under the plan of the present limits.
bool schedule::hold_on(sequence& which, const held_slots& held) const {
  const auto found = held.find(which.slot);
  if (found == held.end())
    return false;
  const auto has_something = [](const auto& stage) { return stage.positions > 0; };
  if (std::none_of(found->second.begin(), found->second.end(), has_something))
    return false;
  if (std::any_of(which.pages.begin(), which.pages.end(), [this](page_id page) {
        return number(page) >= limits_.pages;
      }))
    return false;
  which.held = found->second;
  which.held.resize(limits_.stages);
  for (auto& stage : which.held)
    stage.positions = std::min(stage.positions, which.committed);
  return true;
}

std::vector<request_id> schedule::reform(std::size_t stages,
                                         std::size_t pages,
                                         std::size_t micro_batches,
                                         const held_slots& held) {
  check(in_flight_.empty(), "a plan changes between epochs");
  limits_.stages = stages;
  limits_.pages = pages;
  limits_.micro_batches = micro_batches;
  const auto live = order_;
  std::set<page_id> used;
  for (auto slot = live.rbegin(); slot != live.rend(); ++slot) {
    auto& which = live_.at(*slot);
    if (hold_on(which, held)) {
      used.insert(which.pages.begin(), which.pages.end());
      continue;
    }
    sequence again;
    again.wish = which.wish;
    again.tokens = which.tokens;
    release(*slot);
    waiting_.push_front(std::move(again));
  }
  released_.clear();
  pages_ = page_pool{pages, used};
  std::vector<request_id> hopeless;
  std::erase_if(waiting_, [&](const sequence& one) {
    const bool fits = compute::pages_for(one.wish.prompt.size() + one.wish.max_tokens) <= pages;
    if (!fits)
      hopeless.push_back(one.wish.id);
    return !fits;
  });
  return hopeless;
}

} // namespace troupe::actors
