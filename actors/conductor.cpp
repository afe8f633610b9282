#include "actors/conductor.hpp"

#include "actors/answer.hpp"
#include "actors/codec.hpp"
#include "actors/conductor_phases.hpp"
#include "actors/peer.hpp"
#include "actors/system.hpp"
#include "compute/sampler.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

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
  return gauge;
}

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_interval{50};

compute::sampling unpack(const sampling_choice& wish) {
  compute::sampling made;
  made.temperature = wish.temperature;
  made.top_k = wish.top_k;
  made.top_p = wish.top_p;
  made.min_p = wish.min_p;
  made.repetition_penalty = wish.repetition_penalty;
  made.frequency_penalty = wish.frequency_penalty;
  made.presence_penalty = wish.presence_penalty;
  made.seed = wish.seed;
  return made;
}

class conductor_state {
public:
  static inline const char* name = "conductor";
  using self_pointer = conductor_actor::stateful_pointer<conductor_state>;

  /// The only door; see rank_state::step.
  template <class Act>
  void step(conductor_input input, std::optional<epoch_id> epoch, Act act) {
    if (epoch && *epoch != epoch_)
      return;
    const auto& cell = conductor_phases.at(phase_, input);
    if (cell.what != verdict::go) {
      if (cell.what == verdict::refuse)
        log::warn("conductor refuses {} while {}",
                  conductor_phases.name(input),
                  conductor_phases.name(phase_));
      return;
    }
    if (phase_ != cell.next)
      log::trace("conductor epoch {}: {} --{}--> {}",
                 number(epoch_),
                 conductor_phases.name(phase_),
                 conductor_phases.name(input),
                 conductor_phases.name(cell.next));
    phase_ = cell.next;
    act();
  }

  void start(self_pointer actor, conductor_setup given);
  void join(const epoch_plan& plan);
  void serve();
  caf::result<request_id> take(const generate_request& wish, const caf::strong_actor_ptr& client);
  void cancel(request_id id, std::string why);
  void client_left(const caf::actor_addr& who);
  void commit(const step_output& output);
  void lose_peer(const peer_down& message);
  void end_epoch(const std::string& reason);
  void stop();
  void look();

private:
  void send_steps();
  void send_releases();
  void publish(const committed_token& given);
  void finish(request_id id, finish_reason reason, errc code = {}, std::string what = {});
  void fail_all(errc code, const std::string& why);
  void give_up(conductor_input input, const error& why);
  void leave();
  void show();
  result<request_id> submit(const generate_request& wish, const caf::strong_actor_ptr& client);

  self_pointer self_ = nullptr;
  conductor_setup setup_;
  conductor_phase phase_ = conductor_phase::waiting;
  std::string not_ready_ = "the cluster is starting";
  epoch_id epoch_{};
  std::unique_ptr<schedule> schedule_;
  std::map<request_id, answer> answers_;
  std::uint64_t next_request_ = 1;
  std::vector<rank_actor> input_ranks_; ///< Get the tokens.
  std::vector<rank_actor> other_ranks_; ///< Get the plan.
  std::vector<transport::peer_key> awaited_;
  std::deque<clock::time_point> step_times_; ///< Of the steps in flight, oldest first.
  clock::time_point until_{};                ///< Of joining or draining.
};

void conductor_state::start(self_pointer actor, conductor_setup given) {
  self_ = actor;
  setup_ = std::move(given);
  schedule_ = std::make_unique<schedule>(setup_.limits);
  auto handle = caf::actor_cast<caf::strong_actor_ptr>(self_);
  auto& system = self_->system();
  setup_.wires->on_frame([&system, handle](transport::peer_key from, transport::frame&& received) {
    auto message = decode_message(system, std::move(received));
    if (message)
      handle->enqueue(nullptr, caf::make_message_id(), std::move(*message), nullptr);
    else
      log::warn("conductor peer {} {}", from, message.error().what);
  });
  setup_.wires->on_down([handle](transport::peer_key peer, const error& why) {
    peer_down down{peer, static_cast<std::uint8_t>(why.code), why.what};
    handle->enqueue(nullptr, caf::make_message_id(), caf::make_message(std::move(down)), nullptr);
  });
  // Deadlines are looked at in a message of its own: only then may the conductor end itself.
  setup_.home->on_round([this, last = clock::time_point{}]() mutable {
    const auto now = clock::now();
    if (phase_ != conductor_phase::joining && now - last < look_interval)
      return;
    last = now;
    self_->send(conductor_actor{self_}, tick{});
  });
  self_->set_down_handler([this](const caf::down_msg& down) { client_left(down.source); });
  show();
}

void conductor_state::join(const epoch_plan& plan) {
  epoch_ = plan.epoch;
  transport::epoch_token token{};
  for (std::size_t i = 0; i < token.size() && i < plan.token.size(); ++i)
    token[i] = static_cast<std::byte>(plan.token[i]);
  setup_.wires->start_epoch(plan.epoch, transport::conductor_key, token);
  input_ranks_.clear();
  other_ranks_.clear();
  awaited_.clear();
  until_ = clock::now() + setup_.connect_deadline;
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
      handle = peer_handle<rank_actor>(self_->system(), *setup_.wires, key);
    }
    const bool owns_input = key < plan.tensor_size;
    (owns_input ? input_ranks_ : other_ranks_).push_back(*handle);
  }
  look();
}

void conductor_state::serve() {
  not_ready_.clear();
  self_->send(setup_.director, rank_joined{conductor_rank, epoch_, {}});
}

void conductor_state::look() {
  const auto now = clock::now();
  if (phase_ == conductor_phase::joining) {
    std::erase_if(awaited_, [this](transport::peer_key peer) { return setup_.wires->heard(peer); });
    if (awaited_.empty())
      self_->send(conductor_actor{self_}, peers_heard{epoch_});
    else if (now > until_)
      give_up(conductor_input::peer_down,
              {errc::timed_out,
               fmt::format("the conductor did not hear from {} ranks (the first is rank {}) within "
                           "{} ms of the epoch's start",
                           awaited_.size(),
                           awaited_.front(),
                           setup_.connect_deadline.count())});
    return;
  }
  if (!step_times_.empty() && now - step_times_.front() > setup_.step_deadline)
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
    step(conductor_input::drained, std::nullopt, [&] { leave(); });
}

// -- requests -------------------------------------------------------------------------------------

result<request_id> conductor_state::submit(const generate_request& wish,
                                           const caf::strong_actor_ptr& client) {
  if (phase_ != conductor_phase::serving)
    return error{errc::not_now,
                 fmt::format("the cluster does not serve now: {}",
                             phase_ == conductor_phase::draining ? "it is stopping" : not_ready_)};
  if (auto valid = compute::validate(unpack(wish.sampling)); !valid)
    return valid.error();
  for (const auto token : wish.tokens)
    if (token >= setup_.vocabulary)
      return error{errc::invalid_argument,
                   fmt::format("token {} is outside of the model's vocabulary of {}",
                               token,
                               setup_.vocabulary)};
  if (setup_.max_prompt_tokens > 0 && wish.tokens.size() > setup_.max_prompt_tokens)
    return error{errc::invalid_argument,
                 fmt::format("the prompt has {} tokens, {} are allowed (limits.max_prompt_tokens)",
                             wish.tokens.size(),
                             setup_.max_prompt_tokens)};
  if (setup_.max_new_tokens > 0 && wish.max_tokens > setup_.max_new_tokens)
    return error{errc::invalid_argument,
                 fmt::format("{} new tokens were asked for, {} are allowed (limits.max_new_tokens)",
                             wish.max_tokens,
                             setup_.max_new_tokens)};
  auto stops = compute::stop_strings::make(wish.stop);
  if (!stops)
    return stops.error();
  const auto id = static_cast<request_id>(next_request_);
  sequence_wish made;
  made.id = id;
  made.prompt = wish.tokens;
  made.max_tokens = wish.max_tokens;
  made.sampling = wish.sampling;
  made.with_digests = wish.with_digests;
  if (!wish.ignore_end)
    made.end_tokens = setup_.end_tokens;
  if (auto queued = schedule_->submit(std::move(made)); !queued)
    return queued.error();
  ++next_request_;
  answers_.emplace(id,
                   answer{id,
                          caf::actor_cast<client_actor>(client),
                          compute::text_stream{*setup_.words, true, wish.tokens},
                          std::move(*stops),
                          wish.tokens.size(),
                          wish.with_digests});
  self_->monitor(client);
  return id;
}

caf::result<request_id> conductor_state::take(const generate_request& wish,
                                              const caf::strong_actor_ptr& client) {
  if (!client)
    return to_caf({errc::invalid_argument, "a request needs a client to answer to"});
  auto id = submit(wish, client);
  if (!id)
    return to_caf(id.error());
  rank_board::add(setup_.board->prompt_tokens, wish.tokens.size());
  send_steps();
  return *id;
}

void conductor_state::cancel(request_id id, std::string why) {
  if (!answers_.contains(id))
    return;
  schedule_->cancel(id);
  finish(id, finish_reason::cancelled, errc::cancelled, std::move(why));
  send_steps();
}

void conductor_state::client_left(const caf::actor_addr& who) {
  std::vector<request_id> orphans;
  for (const auto& [id, one] : answers_)
    if (one.client().address() == who)
      orphans.push_back(id);
  for (const auto id : orphans)
    cancel(id, "the client went away");
}

// -- steps ----------------------------------------------------------------------------------------

void conductor_state::send_steps() {
  if (phase_ != conductor_phase::serving && phase_ != conductor_phase::draining)
    return;
  while (auto next = schedule_->plan_step(epoch_)) {
    step_times_.push_back(clock::now());
    for (const auto& rank : other_ranks_)
      self_->send(rank, step_rows{next->plan});
    step_tokens first{std::move(next->plan), std::move(next->tokens)};
    for (const auto& rank : input_ranks_)
      self_->send(rank, first);
  }
  send_releases();
  show();
}

void conductor_state::send_releases() {
  auto slots = schedule_->take_idle_releases();
  if (slots.empty())
    return;
  const slots_released message{epoch_, std::move(slots)};
  for (const auto& rank : input_ranks_)
    self_->send(rank, message);
  for (const auto& rank : other_ranks_)
    self_->send(rank, message);
}

void conductor_state::commit(const step_output& output) {
  auto given = schedule_->commit(output);
  if (!given) {
    give_up(conductor_input::step_late, given.error());
    return;
  }
  step_times_.pop_front();
  // The next step goes out before the text does: the ranks are waiting, the client is not.
  send_steps();
  for (const auto& token : *given)
    publish(token);
  send_steps();
}

void conductor_state::publish(const committed_token& given) {
  const auto found = answers_.find(given.id);
  if (found == answers_.end())
    return;
  auto& one = found->second;
  if (given.ended == sequence_end::failed) {
    finish(given.id,
           finish_reason::failed,
           static_cast<errc>(given.code),
           "a value of this request is not a finite number; other requests go on" + setup_.remedy);
    return;
  }
  rank_board::add(setup_.board->answer_tokens, 1);
  self_->send(one.client(), one.take(given));
  if (one.stopped()) {
    schedule_->cancel(given.id);
    finish(given.id, finish_reason::end);
  } else if (given.ended != sequence_end::none) {
    auto rest = one.rest();
    if (!rest.text.empty())
      self_->send(one.client(), std::move(rest));
    finish(given.id,
           given.ended == sequence_end::length ? finish_reason::length : finish_reason::end);
  }
}

void conductor_state::finish(request_id id, finish_reason reason, errc code, std::string what) {
  const auto found = answers_.find(id);
  if (found == answers_.end())
    return;
  auto& board = *setup_.board;
  rank_board::add(reason == finish_reason::failed      ? board.failed
                  : reason == finish_reason::cancelled ? board.cancelled
                                                       : board.finished,
                  1);
  self_->send(found->second.client(), found->second.end(reason, code, std::move(what)));
  const auto client = found->second.client();
  answers_.erase(found);
  const bool more = std::any_of(answers_.begin(), answers_.end(), [&](const auto& entry) {
    return entry.second.client() == client;
  });
  if (!more)
    self_->demonitor(client.address());
}

// -- the end of an epoch --------------------------------------------------------------------------

void conductor_state::fail_all(errc code, const std::string& why) {
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
    fail_all(why.code, why.what);
    self_->send(
      setup_.director,
      rank_fault{
        conductor_rank, epoch_, step_id{}, phase, static_cast<std::uint8_t>(why.code), why.what});
    if (phase_ == conductor_phase::stopped)
      leave();
  });
}

void conductor_state::lose_peer(const peer_down& message) {
  // The door has moved on already; who is gone is for the director to decide on.
  const auto why = fmt::format("rank {} cannot be reached: {}", message.peer, message.what);
  fail_all(errc::unreachable, why);
  self_->send(setup_.director,
              rank_fault{conductor_rank, epoch_, step_id{}, "serving", message.code, why});
  if (phase_ == conductor_phase::stopped)
    leave();
}

void conductor_state::end_epoch(const std::string& reason) {
  fail_all(errc::unreachable, reason);
  input_ranks_.clear();
  other_ranks_.clear();
  if (phase_ == conductor_phase::stopped)
    leave();
}

void conductor_state::stop() {
  until_ = clock::now() + setup_.drain_deadline;
  if (phase_ == conductor_phase::stopped || answers_.empty())
    leave();
}

void conductor_state::leave() {
  fail_all(errc::cancelled, "the cluster is stopping");
  phase_ = conductor_phase::stopped;
  input_ranks_.clear();
  other_ranks_.clear();
  setup_.home->on_round(nullptr);
  setup_.wires->on_frame(nullptr);
  setup_.wires->on_down(nullptr);
  setup_.home->stop();
  self_->quit();
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

conductor_actor::behavior_type conductor(conductor_state::self_pointer self) {
  auto& my = self->state;
  using input = conductor_input;
  return {
    [&my](const epoch_plan& m) { my.step(input::epoch_plan, std::nullopt, [&] { my.join(m); }); },
    [&my](const peers_heard& m) { my.step(input::peers_heard, m.epoch, [&] { my.serve(); }); },
    [&my](const generate_request& m, const caf::strong_actor_ptr& client) {
      return my.take(m, client);
    },
    [&my](const request_cancel& m) { my.cancel(m.request, "withdrawn by the client"); },
    [&my](const step_output& m) { my.step(input::step_output, m.epoch, [&] { my.commit(m); }); },
    [&my](const peer_down& m) {
      my.step(input::peer_down, std::nullopt, [&] { my.lose_peer(m); });
    },
    [&my](const fence& m) { my.step(input::fence, m.epoch, [&] { my.end_epoch(m.reason); }); },
    [&my](const tick&) { my.look(); },
    [&my](const node_stop&) { my.step(input::stop, std::nullopt, [&] { my.stop(); }); },
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
