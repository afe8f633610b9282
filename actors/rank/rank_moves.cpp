// A plan that changes: the state of running sequences goes with the layers
// (actors/rank/state_moves).

#include "actors/rank/rank_state.hpp"

#include <algorithm>

namespace troupe::actors {

// -- what it held ---------------------------------------------------------------------------------

/// Before the shard changes. What was remembered and has not moved yet is older and holds more.
void rank_state::remember_state() {
  if (partition_ && !former_ && state_.cache) {
    former_.emplace();
    former_->units = partition_->record().units;
    former_->tensor = partition_->record().tensor_rank;
    former_->pages = state_.cache->shape().pages;
    former_->state = std::move(state_);
    former_->rows = std::move(kept_);
    for (auto& [slot, live] : slots_) {
      former_->slots.push_back({slot, std::move(live.pages), live.length});
      former_->rows_of.emplace(slot, live.rows);
    }
  }
  state_ = {};
  kept_.reset();
  slots_.clear();
}

/// Whether the new shard has the very layers of the last one: then its state is as good as it was.
bool rank_state::takes_back_state(const compute::partition_record& record, std::size_t pages) {
  if (!former_ || former_->units != record.units || former_->tensor != record.tensor_rank
      || former_->pages != pages)
    return false;
  kept_ = take_back_rows(record, pages);
  for (auto& slot : former_->slots) {
    const auto rows = former_->rows_of.find(slot.slot);
    const bool known = rows != former_->rows_of.end();
    slots_.emplace(slot.slot,
                   live_slot{std::move(slot.pages),
                             slot.length,
                             known ? rows->second : range{slot.length, slot.length},
                             nullptr});
  }
  state_ = std::move(former_->state);
  former_.reset();
  return true;
}

/// The rows that were sent behind the last layer, where that is still the last one and not of all.
std::optional<boundary_log> rank_state::take_back_rows(const compute::partition_record& record,
                                                       std::size_t pages) {
  if (!former_)
    return std::nullopt;
  auto rows = std::exchange(former_->rows, std::nullopt);
  if (rows && !record.owns_output && former_->units.end == record.units.end
      && former_->pages == pages)
    return rows;
  former_->rows_of.clear();
  return std::nullopt;
}

// -- moving ---------------------------------------------------------------------------------------

/// Its number in a plan: ranks that are of the last one only are numbered on.
rank_id rank_state::own_number(const epoch_plan& plan) const {
  const auto own = own_address();
  for (const auto& leaver : plan.leavers)
    if (leaver.address == own)
      return leaver.rank;
  return assignment_.rank;
}

bool rank_state::leaves() const {
  return number(setup.rank) >= plan_.ranks.size();
}

bool rank_state::has_left(transport::peer_key peer) const {
  return peer != transport::conductor_key && peer >= plan_.ranks.size()
         && phase_ != rank_phase::joining;
}

/// Prepares what it sends and what it gets, and meets those that are concerned.
result<void> rank_state::begin_moves() {
  const auto meet_mover = [this](rank_id other) -> result<void> {
    if (number(other) < plan_.ranks.size())
      return meet(other);
    return connect(number(other), plan_.leavers.at(number(other) - plan_.ranks.size()).address);
  };
  std::vector<moved_slot> slots;
  if (former_)
    slots = former_->slots;
  else
    for (const auto& [slot, live] : slots_)
      slots.push_back({slot, live.pages, live.length});
  const auto& held = former_ ? former_->state : state_;
  outbox_.emplace(
    epoch_, *held.cache, former_ ? former_->units : partition_->record().units, std::move(slots));
  const bool gets = std::any_of(plan_.moves.begin(), plan_.moves.end(), [this](const auto& move) {
    return move.to == setup.rank;
  });
  if (former_ || gets)
    intake_.emplace(*state_.cache, partition_->record().units);
  if (former_ && former_->tensor == assignment_.tensor)
    if (auto taken = intake_->take(*former_); !taken)
      return taken;
  for (const auto& move : plan_.moves) {
    if (move.from != setup.rank && move.to != setup.rank)
      continue;
    if (auto met = meet_mover(move.from == setup.rank ? move.to : move.from); !met)
      return met;
    if (move.from == setup.rank)
      outbox_->add(move);
    else
      intake_->expect({move.first_unit, move.last_unit});
  }
  return {};
}

/// As long as this rank computed on these positions, and a moment.
std::chrono::nanoseconds rank_state::patience_for(std::size_t positions) const {
  constexpr std::chrono::milliseconds moment{500};
  const auto rows = std::max<std::uint64_t>(1, setup.board->rows.load(std::memory_order_relaxed));
  const auto row_ns = setup.board->compute_ns.load(std::memory_order_relaxed) / rows;
  return moment + std::chrono::nanoseconds(row_ns * positions);
}

/// As much as the wires take: a peer that is slow to read slows nobody else down. What takes longer
/// than it took to compute is better computed again.
result<void> rank_state::send_state() {
  if (!outbox_ || outbox_->empty() || !awaited_.empty())
    return {};
  if (!send_until_)
    send_until_ = clock::now() + patience_for(outbox_->positions());
  if (clock::now() > *send_until_) {
    log::warn("rank {} epoch {} keeps the rest of its state: the wires are slower than the layers",
              number(setup.rank),
              number(epoch_));
    outbox_->give_up();
    send_until_ = clock::time_point::max();
  }
  while (!outbox_->empty() && setup.wires->drained()) {
    auto next = outbox_->next();
    if (!next)
      return next.error();
    const auto receiver = handle_of((*next)->to);
    if (const auto* manifest = std::get_if<state_manifest>(&(*next)->message)) {
      self_->send(receiver, *manifest);
      continue;
    }
    const auto& page = std::get<state_outbox::page_of>((*next)->message);
    rank_board::add(setup.board->state_bytes_sent, page.bytes.size());
    rank_board::add(setup.board->progress, 1);
    join_until_ = clock::now() + setup.connect_deadline;
    self_->send(receiver, page.what, page.bytes);
  }
  return {};
}

void rank_state::take(const state_manifest& message) {
  if (message.epoch != epoch_ || !intake_)
    return;
  if (auto taken = intake_->take(message); !taken)
    give_up(rank_input::peer_down, taken.error());
}

void rank_state::take(const state_page& message, const compute::buffer& bytes) {
  if (message.epoch != epoch_ || !intake_)
    return;
  join_until_ = clock::now() + setup.connect_deadline;
  if (auto taken = intake_->take(message, bytes); !taken)
    give_up(rank_input::peer_down, taken.error());
}

bool rank_state::state_is_here() const {
  return (!outbox_ || outbox_->empty()) && (!intake_ || intake_->complete());
}

/// Everything has moved: what came is the rank's own now.
void rank_state::settle_state() {
  if (intake_) {
    slots_.clear();
    for (auto& slot : intake_->slots()) {
      range rows{slot.length, slot.length};
      if (former_)
        if (const auto known = former_->rows_of.find(slot.slot); known != former_->rows_of.end())
          rows = known->second;
      slots_.emplace(slot.slot, live_slot{std::move(slot.pages), slot.length, rows, nullptr});
    }
  }
  forget_moves();
}

void rank_state::report_state() {
  state_held report;
  report.epoch = epoch_;
  report.rank = setup.rank;
  for (const auto& [slot, live] : slots_)
    report.slots.push_back({slot,
                            live.length,
                            static_cast<std::uint32_t>(live.rows.begin),
                            static_cast<std::uint32_t>(live.rows.end)});
  self_->send(*conductor_, std::move(report));
}

void rank_state::forget_moves() {
  send_until_.reset();
  outbox_.reset();
  intake_.reset();
  former_.reset();
}

} // namespace troupe::actors
