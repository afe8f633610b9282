#include "actors/conductor/conductor.hpp"

#include "actors/conductor/conductor_state.hpp"
#include "actors/conductor/state_reports.hpp"
#include "actors/wires/codec.hpp"
#include "actors/wires/peer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::actors {

conductor_gauge conductor_board::read() const {
  const auto get = [](const counter& from) { return from.load(std::memory_order_relaxed); };
  conductor_gauge gauge;
  gauge.queued = get(queued);
  gauge.running = get(running);
  gauge.finished = get(finished);
  gauge.failed = get(failed);
  gauge.cancelled = get(cancelled);
  gauge.prompt_tokens = get(prompt_tokens);
  gauge.answer_tokens = get(answer_tokens);
  gauge.steps = get(steps);
  gauge.steps_in_flight = get(steps_in_flight);
  gauge.pages_total = get(pages_total);
  gauge.pages_used = get(pages_used);
  gauge.refused = get(refused);
  gauge.queued_us = queued_us.read();
  gauge.first_token_us = first_token_us.read();
  gauge.between_tokens_us = between_tokens_us.read();
  gauge.whole_us = whole_us.read();
  gauge.step_rows = step_rows.read();
  gauge.step_requests = step_requests.read();
  return gauge;
}

namespace {

constexpr std::chrono::milliseconds look_interval{100};

/// A request that was running when so many epochs ended in a row, without a token in between, may
/// well be what ends them.
constexpr int resumes_at_most = 8;

} // namespace

void conductor_state::start(self_pointer actor, conductor_setup given) {
  self_ = actor;
  setup_ = std::move(given);
  schedule_ = std::make_unique<schedule>(setup_.limits);
  attend(*setup_.wires);
  // Deadlines are looked at in a message of its own: only then may the conductor end itself.
  setup_.home->on_round([this, last = clock::time_point{}]() mutable {
    const auto now = clock::now();
    if (phase_ != conductor_phase::joining && now - last < look_interval)
      return;
    last = now;
    self_->send(conductor_actor{self_}, tick{});
  });
  self_->set_down_handler([this](const caf::down_msg& down) { client_left(down.source); });
  paused_since_ = clock::now();
  restore();
  show();
}

void conductor_state::attend(transport::transport& wires) {
  setup_.wires = &wires;
  auto handle = caf::actor_cast<caf::strong_actor_ptr>(self_);
  auto& system = self_->system();
  wires.on_frame([&system, handle](transport::peer_key from, transport::frame&& received) {
    auto message = decode_message(system, std::move(received));
    if (message)
      handle->enqueue(nullptr, caf::make_message_id(), std::move(*message), nullptr);
    else
      log::warn("conductor peer {} {}", from, message.error().what);
  });
  wires.on_down([handle](transport::peer_key peer, const error& why) {
    peer_down down{peer, static_cast<std::uint8_t>(why.code), why.what};
    handle->enqueue(nullptr, caf::make_message_id(), caf::make_message(std::move(down)), nullptr);
  });
}

void conductor_state::take_new_wires(result<transport::transport*> made) {
  if (!made) {
    log::error("conductor gets no new wires: {}", made.error().what);
    self_->send(setup_.director,
                rank_fault{conductor_rank,
                           epoch_id{},
                           step_id{},
                           std::string{rank_phases.name(rank_phase::loading)},
                           static_cast<std::uint8_t>(made.error().code),
                           made.error().what});
    return;
  }
  attend(**made);
  rank_rewired told;
  told.rank = conductor_rank;
  for (const auto byte : setup_.wires->address().bytes)
    told.address.push_back(std::to_integer<std::uint8_t>(byte));
  self_->send(setup_.director, std::move(told));
}

/// Another number of stages or pages: what runs goes on from what the ranks hold, and where that is
/// nothing, from its tokens.
void conductor_state::take_shape(const epoch_plan& plan, const held_slots& held) {
  const auto& limits = schedule_->limits();
  const auto steps =
    setup_.one_step_a_stage ? std::size_t{plan.pipeline_size} : limits.micro_batches;
  for (const auto id : schedule_->reform(plan.pipeline_size, plan.pages, steps, held))
    finish(
      id,
      finish_reason::failed,
      errc::out_of_memory,
      fmt::format("the cluster has become smaller: {} pages of state are fewer than this request "
                  "needs",
                  plan.pages));
}

/// A rank that was loaded anew has no state: its stage gets it back before sequences go on.
void conductor_state::note_lives(const epoch_plan& plan) {
  for (const auto& where : plan.ranks) {
    auto& life = lives_[where.rank];
    if (std::exchange(life, where.life) != where.life)
      schedule_->lose(number(where.rank) / plan.tensor_size);
  }
}

void conductor_state::join(const epoch_plan& plan) {
  epoch_ = plan.epoch;
  restaged_.reset();
  reports_.clear();
  const auto& limits = schedule_->limits();
  if (plan.restaged != 0) {
    restaged_ = plan;
    for (const auto& where : plan.ranks)
      lives_[where.rank] = where.life;
  } else {
    if (limits.stages != plan.pipeline_size || limits.pages != plan.pages)
      take_shape(plan, {});
    note_lives(plan);
  }
  transport::epoch_token token{};
  for (std::size_t i = 0; i < token.size() && i < plan.token.size(); ++i)
    token[i] = static_cast<std::byte>(plan.token[i]);
  setup_.wires->start_epoch(plan.epoch, transport::conductor_key, token);
  awaited_.clear();
  until_ = clock::now() + setup_.connect_deadline;
  meet(plan);
}

void conductor_state::meet(const epoch_plan& plan) {
  stages_.assign(plan.pipeline_size, {});
  for (const auto& where : plan.ranks) {
    const auto key = number(where.rank);
    auto handle = setup_.here->find(where.rank);
    if (!handle) {
      transport::peer_address address;
      for (const auto byte : where.address)
        address.bytes.push_back(static_cast<std::byte>(byte));
      if (auto connected = setup_.wires->connect(key, address); !connected) {
        give_up(conductor_input::peer_down, connected.error());
        return;
      }
      awaited_.push_back(key);
      handle = peer_handle<rank_actor>(self_, *setup_.wires, key);
    }
    stages_.at(key / plan.tensor_size).push_back(*handle);
  }
  look();
}

/// They say so before they have joined.
void conductor_state::take(const state_held& report) {
  if (restaged_)
    reports_[report.rank] = report.slots;
  look();
}

void conductor_state::serve() {
  if (const auto plan = std::exchange(restaged_, std::nullopt))
    take_shape(*plan, join_reports(reports_, plan->pipeline_size, plan->tensor_size));
  recovers_ = true;
  not_ready_.clear();
  self_->send(setup_.director, rank_joined{conductor_rank, epoch_, {}});
  send_steps(); // of requests that an earlier epoch left
}

void conductor_state::look() {
  const auto now = clock::now();
  if (!unwritten_.empty())
    write_down_in_time();
  if (phase_ == conductor_phase::joining) {
    std::erase_if(awaited_, [this](transport::peer_key peer) { return setup_.wires->heard(peer); });
    if (awaited_.empty() && (!restaged_ || reports_.size() >= restaged_->ranks.size()))
      self_->send(conductor_actor{self_}, peers_heard{epoch_});
    else if (!awaited_.empty() && now > until_)
      give_up(conductor_input::peer_down,
              {errc::timed_out,
               fmt::format("the conductor did not hear from {} ranks (the first is rank {}) within "
                           "{} ms of the epoch's start",
                           awaited_.size(),
                           awaited_.front(),
                           setup_.connect_deadline.count())});
    return;
  }
  if (phase_ == conductor_phase::waiting && !answers_.empty()
      && now - paused_since_ > setup_.resume_deadline)
    fail_all(errc::unreachable, not_ready_);
  if (!step_times_.empty() && now - step_times_.begin()->second > setup_.step_deadline)
    give_up(conductor_input::step_late,
            {errc::timed_out,
             fmt::format("a step got no output within {} ms", setup_.step_deadline.count())});
  if (setup_.request_deadline.count() > 0) {
    std::vector<request_id> late;
    for (const auto& [id, one] : answers_)
      if (now - one.submitted() > setup_.request_deadline)
        late.push_back(id);
    for (const auto id : late) {
      schedule_->cancel(id);
      finish(id,
             finish_reason::failed,
             errc::timed_out,
             fmt::format("the request took longer than {} ms", setup_.request_deadline.count()));
    }
  }
  if (phase_ == conductor_phase::draining && (answers_.empty() || now > until_))
    step(conductor_input::drained, std::nullopt, [&] { leave("the cluster is stopping"); });
}

// -- steps ----------------------------------------------------------------------------------------

void conductor_state::send_steps() {
  if (phase_ != conductor_phase::serving && phase_ != conductor_phase::draining)
    return;
  while (const auto next = schedule_->plan_step(epoch_)) {
    const auto now = clock::now();
    step_times_.emplace(next->plan.step, now);
    trace_.begin(next->plan, now);
    if (auto* injector = faults())
      injector->begin_step();
    note(next->plan);
    send(*next);
  }
  send_releases();
  show();
}

/// What goes out, for those who watch.
void conductor_state::note(const step_plan& plan) {
  if (plan.replay())
    return;
  setup_.board->step_rows.add(plan.rows());
  setup_.board->step_requests.add(plan.entries.size());
  for (const auto& entry : plan.entries)
    if (!entry.pages.empty())
      if (const auto found = answers_.find(entry.request); found != answers_.end())
        if (const auto waited = found->second.start())
          setup_.board->queued_us.add(*waited);
}

/// The first stage last: it starts at once, and the others then know what to expect.
void conductor_state::send(const next_step& step) {
  const auto& plan = step.plan;
  const std::size_t first = plan.first_stage;
  const std::size_t last = plan.replay() ? plan.last_stage : stages_.size();
  for (auto stage = std::max<std::size_t>(first, 1); stage < last; ++stage)
    for (const auto& rank : stages_[stage])
      self_->send(rank, step_rows{plan});
  if (first == 0)
    for (const auto& rank : stages_[0])
      self_->send(rank, step_tokens{plan, step.tokens});
  else
    for (const auto& rank : stages_[first - 1])
      self_->send(rank, rows_again{plan});
}

void conductor_state::send_releases() {
  auto slots = schedule_->take_idle_releases();
  if (slots.empty())
    return;
  const slots_released message{epoch_, std::move(slots)};
  for (const auto& stage : stages_)
    for (const auto& rank : stage)
      self_->send(rank, message);
}

void conductor_state::commit(const step_output& output) {
  auto given = schedule_->commit(output);
  if (!given) {
    give_up(conductor_input::step_late, given.error());
    return;
  }
  step_times_.erase(output.step);
  trace_.end(output.step, clock::now());
  report_trace();
  // The next step goes out before the text does: the ranks are waiting, the client is not.
  send_steps();
  unwritten_.insert(unwritten_.end(), given->begin(), given->end());
  write_down_in_time();
  send_steps();
}

// -- the end of an epoch --------------------------------------------------------------------------

/// Live requests keep their tokens and wait for the next epoch, in which the stages that lost their
/// state get it back: the same tokens follow, since a draw depends on seed and position alone.
void conductor_state::pause(const std::string& why) {
  write_down();
  schedule_->interrupt();
  step_times_.clear();
  trace_.forget_open();
  not_ready_ = why;
  std::vector<request_id> hopeless;
  for (auto& [id, one] : answers_)
    if (one.resume() > resumes_at_most)
      hopeless.push_back(id);
  for (const auto id : hopeless) {
    schedule_->cancel(id);
    finish(id,
           finish_reason::failed,
           errc::unreachable,
           fmt::format(
             "{} epochs ended before its next token; the last one since {}", resumes_at_most, why));
  }
  paused_since_ = clock::now();
  show();
}

void conductor_state::fail_all(errc code, const std::string& why) {
  write_down();
  schedule_->clear();
  step_times_.clear();
  while (!answers_.empty())
    finish(answers_.begin()->first, finish_reason::failed, code, why);
  not_ready_ = why;
  show();
}

void conductor_state::give_up(conductor_input input, const error& why) {
  const auto phase = std::string{conductor_phases.name(phase_)};
  step(input, std::nullopt, [&] {
    log::error("conductor epoch {} gives up while {}: {}", number(epoch_), phase, why.what);
    pause(why.what);
    self_->send(
      setup_.director,
      rank_fault{
        conductor_rank, epoch_, step_id{}, phase, static_cast<std::uint8_t>(why.code), why.what});
    if (phase_ == conductor_phase::stopped)
      leave(why.what);
  });
}

void conductor_state::lose_peer(const peer_down& message) {
  // The door has moved on already; who is gone is for the director to decide on.
  const auto why = fmt::format("rank {} cannot be reached: {}", message.peer, message.what);
  pause(why);
  self_->send(setup_.director,
              rank_fault{conductor_rank, epoch_, step_id{}, "serving", message.code, why});
  if (phase_ == conductor_phase::stopped)
    leave(why);
}

/// New requests wait for the next epoch as running ones do, unless that waits for a node itself.
void conductor_state::hear(const fence& over) {
  if (over.node_missing != 0)
    recovers_ = false;
}

void conductor_state::end_epoch(const std::string& reason) {
  if (phase_ == conductor_phase::stopped) {
    leave(reason);
    return;
  }
  pause(reason);
  stages_.clear();
  epoch_ = {};
  setup_.home->renew_wires(
    [this](result<transport::transport*> made) { take_new_wires(std::move(made)); });
}

void conductor_state::stop(const node_stop& order) {
  write_down();
  if (order.failure != node_stop::no_failure)
    setup_.journal.reset(); // what runs has not ended: it goes on when the head is started again
  until_ = clock::now() + setup_.drain_deadline;
  if (phase_ == conductor_phase::stopped || answers_.empty())
    leave(order.reason);
}

void conductor_state::leave(const std::string& why) {
  fail_all(errc::cancelled, why);
  phase_ = conductor_phase::stopped;
  stages_.clear();
  setup_.home->on_round(nullptr);
  setup_.wires->on_frame(nullptr);
  setup_.wires->on_down(nullptr);
  setup_.home->stop();
  self_->quit();
}

void conductor_state::take(const fault_order& order) {
  if (auto ordered = read_order(*setup_.settings, order))
    setup_.faults->add({*ordered});
}

void conductor_state::take(const trace_order& order) {
  trace_.start(order);
  report_trace();
}

void conductor_state::report_trace() {
  auto part = trace_.take();
  if (!part)
    return;
  part->rank = conductor_rank;
  self_->send(setup_.director, std::move(*part));
}

void conductor_state::show() {
  auto& board = *setup_.board;
  rank_board::set(board.queued, schedule_->waiting());
  rank_board::set(board.running, schedule_->running());
  rank_board::set(board.steps, schedule_->steps_planned());
  rank_board::set(board.steps_in_flight, schedule_->steps_in_flight());
  rank_board::set(board.pages_total, schedule_->pages().total());
  rank_board::set(board.pages_used, schedule_->pages().used());
}

// -- behaviour ------------------------------------------------------------------------------------

namespace {

conductor_actor::behavior_type conductor(conductor_state::self_pointer self) {
  auto& my = self->state;
  using input = conductor_input;
  return {
    [&my](const epoch_plan& m) { my.step(input::epoch_plan, std::nullopt, [&] { my.join(m); }); },
    [&my](const state_held& m) { my.step(input::state_held, m.epoch, [&] { my.take(m); }); },
    [&my](const peers_heard& m) { my.step(input::peers_heard, m.epoch, [&] { my.serve(); }); },
    [&my](const generate_request& m, const caf::strong_actor_ptr& client) {
      return my.take(m, client);
    },
    [&my](const stream_attach& m, const caf::strong_actor_ptr& client) {
      return my.take(m, client);
    },
    [&my](const request_cancel& m) { my.cancel(m.request, "withdrawn by the client"); },
    [&my](const step_output& m) { my.step(input::step_output, m.epoch, [&] { my.commit(m); }); },
    [&my](const peer_down& m) {
      my.step(input::peer_down, std::nullopt, [&] { my.lose_peer(m); });
    },
    [&my](const fence& m) {
      my.hear(m);
      my.step(input::fence, m.epoch, [&] { my.end_epoch(m.reason); });
    },
    [&my](const fault_order& m) { my.take(m); },
    [&my](const trace_order& m) { my.take(m); },
    [&my](const tick&) { my.look(); },
    [&my](const node_stop& m) { my.step(input::stop, std::nullopt, [&] { my.stop(m); }); },
  };
}

class conductor_on_reactor : public on_reactor<conductor_actor::stateful_base<conductor_state>> {
public:
  conductor_on_reactor(caf::actor_config& config, reactor& home, conductor_setup setup)
    : on_reactor(config, home) {
    state.start(this, std::move(setup));
  }

  conductor_actor::behavior_type make_behavior() override { return conductor(this); }
};

} // namespace

conductor_actor spawn_conductor(caf::actor_system& system, conductor_setup setup) {
  auto& home = *setup.home;
  return system.spawn<conductor_on_reactor>(std::ref(home), std::move(setup));
}

} // namespace troupe::actors
