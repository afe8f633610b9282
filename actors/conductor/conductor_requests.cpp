#include "actors/conductor/answer_checks.hpp"
#include "actors/conductor/conductor_state.hpp"
#include "actors/control/system.hpp"
#include "actors/sampling.hpp"
#include "compute/sampler.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

result<sequence_wish> conductor_state::make_wish(request_id id,
                                                 const generate_request& wish) const {
  auto rules = rules_of(wish, setup_.vocabulary, setup_.end_tokens);
  if (!rules)
    return rules.error();
  sequence_wish made;
  made.id = id;
  made.label = wish.label;
  made.prompt = wish.tokens;
  made.max_tokens = wish.max_tokens;
  made.sampling = wish.sampling;
  made.with_digests = wish.with_digests;
  made.with_logprobs = wish.with_logprobs;
  made.rules = std::move(*rules);
  if (!wish.ignore_end)
    made.end_tokens = setup_.end_tokens;
  return made;
}

result<answer> conductor_state::make_answer(request_id id,
                                            const generate_request& wish,
                                            client_actor client) const {
  auto stops = compute::stop_strings::make(wish.stop);
  if (!stops)
    return stops.error();
  const bool keeps_pieces = setup_.journal != nullptr;
  return answer{id,
                std::move(client),
                compute::text_stream{*setup_.words, true, wish.tokens},
                std::move(*stops),
                wish,
                keeps_pieces};
}

result<request_id> conductor_state::submit(const generate_request& wish,
                                           const caf::strong_actor_ptr& client) {
  const bool pauses =
    recovers_ && (phase_ == conductor_phase::waiting || phase_ == conductor_phase::joining);
  if (phase_ != conductor_phase::serving && !pauses)
    return error{errc::not_now,
                 fmt::format("the cluster does not serve now: {}",
                             phase_ == conductor_phase::draining ? "it is stopping" : not_ready_)};
  if (auto valid = compute::validate(to_sampling(wish.sampling)); !valid)
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
  const auto id = static_cast<request_id>(next_request_);
  auto made = make_answer(id, wish, caf::actor_cast<client_actor>(client));
  if (!made)
    return made.error();
  auto sequence = make_wish(id, wish);
  if (!sequence)
    return sequence.error();
  if (auto queued = schedule_->submit(std::move(*sequence)); !queued)
    return queued.error();
  ++next_request_;
  answers_.emplace(id, std::move(*made));
  if (setup_.journal)
    note(setup_.journal->begin(id, wish));
  self_->monitor(client);
  log::debug("request {} '{}' comes with {} tokens and wants {} at most",
             number(id),
             wish.label,
             wish.tokens.size(),
             wish.max_tokens);
  return id;
}

caf::result<request_id> conductor_state::take(const generate_request& wish,
                                              const caf::strong_actor_ptr& client) {
  if (!client)
    return to_caf({errc::invalid_argument, "a request needs a client to answer to"});
  auto id = submit(wish, client);
  if (!id) {
    rank_board::add(setup_.board->refused, 1);
    return to_caf(id.error());
  }
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
    if (one.client() && one.client().address() == who)
      orphans.push_back(id);
  for (const auto id : orphans)
    cancel(id, "the client went away");
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
  const bool first = one.tokens() == 0;
  auto piece = one.take(given);
  auto& waits = first ? setup_.board->first_token_us : setup_.board->between_tokens_us;
  waits.add(one.last_wait_us());
  if (one.client())
    self_->send(one.client(), std::move(piece));
  if (one.stopped()) {
    schedule_->cancel(given.id);
    finish(given.id, finish_reason::end);
  } else if (given.ended != sequence_end::none) {
    auto rest = one.rest();
    if (!rest.text.empty() && one.client())
      self_->send(one.client(), std::move(rest));
    finish(given.id,
           given.ended == sequence_end::length ? finish_reason::length : finish_reason::end);
  }
}

void conductor_state::finish(request_id id, finish_reason reason, errc code, std::string what) {
  write_down(); // the end comes last
  const auto found = answers_.find(id);
  if (found == answers_.end())
    return;
  auto& board = *setup_.board;
  rank_board::add(reason == finish_reason::failed      ? board.failed
                  : reason == finish_reason::cancelled ? board.cancelled
                                                       : board.finished,
                  1);
  const auto told = found->second.end(reason, code, std::move(what));
  board.whole_us.add(told.total_us);
  log::debug("request {} ends after {} tokens and {} us {}",
             number(id),
             told.answer_tokens,
             told.total_us,
             told.what);
  if (setup_.journal)
    note(setup_.journal->end(told));
  const auto client = found->second.client();
  answers_.erase(found);
  if (!client)
    return;
  self_->send(client, told);
  const bool more = std::any_of(answers_.begin(), answers_.end(), [&](const auto& entry) {
    return entry.second.client() == client;
  });
  if (!more)
    self_->demonitor(client.address());
}

} // namespace troupe::actors
