// What the conductor remembers beyond the life of its process: requests go on after a restart of
// the head, and a client whose stream broke goes on reading where it was.

#include "actors/conductor/conductor_state.hpp"
#include "actors/control/system.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

/// Without a journal requests still run; the log says that it is kept no more.
void conductor_state::note(const result<void>& written) {
  if (written)
    return;
  log::error("conductor goes on without its journal: {}", written.error().what);
  setup_.journal.reset();
}

/// Tokens are written before anybody can have read them. Those of a fast model are written
/// together, a few times in as many milliseconds: an entry by itself costs as much as several at
/// once.
void conductor_state::write_down_in_time() {
  constexpr std::chrono::milliseconds pause{4};
  const auto now = clock::now();
  const bool ends = std::any_of(unwritten_.begin(), unwritten_.end(), [](const auto& token) {
    return token.ended != sequence_end::none;
  });
  if (!setup_.journal || ends || now - written_at_ >= pause) {
    write_down();
    return;
  }
  if (now < write_due_)
    return;
  write_due_ = now + pause;
  self_->delayed_send(conductor_actor{self_}, pause, tick{});
}

void conductor_state::write_down() {
  const auto given = std::exchange(unwritten_, {});
  if (given.empty())
    return;
  written_at_ = clock::now();
  if (setup_.journal)
    note(setup_.journal->append(given));
  for (const auto& token : given)
    publish(token);
}

/// Takes in what a former process of the head left: requests wait with the tokens that they had.
void conductor_state::restore() {
  if (!setup_.journal)
    return;
  auto last = setup_.journal->last_request();
  auto left = setup_.journal->unfinished();
  if (!last || !left) {
    note(last ? left.error() : last.error());
    return;
  }
  next_request_ = number(*last) + 1;
  for (const auto& entry : *left)
    take_up(entry);
  if (!left->empty())
    log::info("conductor takes {} requests from its journal", left->size());
}

void conductor_state::take_up(const journal_entry& entry) {
  auto made = make_answer(entry.id, entry.wish, client_actor{});
  const auto sequence = make_wish(entry.id, entry.wish);
  if (!made || !sequence) { // what was accepted once
    log::error("request {} of the journal is lost: {}",
               number(entry.id),
               made ? sequence.error().what : made.error().what);
    return;
  }
  std::vector<token_id> tokens;
  for (const auto& given : entry.answer) {
    made->take(given);
    tokens.push_back(given.token);
  }
  const auto& wish = *sequence;
  const auto most =
    std::min<std::size_t>(wish.max_tokens, setup_.limits.context - wish.prompt.size());
  const auto& ends = wish.end_tokens;
  const bool ended =
    !tokens.empty() && std::find(ends.begin(), ends.end(), tokens.back()) != ends.end();
  const bool stopped = made->stopped();
  answers_.emplace(entry.id, std::move(*made));
  // The process may have died between the last token and the note of the end.
  if (stopped || ended)
    finish(entry.id, finish_reason::end);
  else if (tokens.size() >= most)
    finish(entry.id, finish_reason::length);
  else
    schedule_->resume(wish, tokens);
}

result<request_id> conductor_state::find_stream(const stream_attach& which,
                                                const client_actor& client) {
  const auto pieces_to = [&](const std::vector<text_piece>& pieces) {
    for (const auto& piece : pieces)
      if (piece.first >= which.offset)
        self_->send(client, piece);
  };
  if (const auto live = answers_.find(which.request); live != answers_.end() && setup_.journal) {
    if (live->second.client())
      return error{
        errc::not_now,
        fmt::format("request {} is being read by another client", number(which.request))};
    pieces_to(live->second.pieces());
    live->second.give_to(client);
    return which.request;
  }
  if (!setup_.journal)
    return error{errc::not_found,
                 fmt::format("request {} cannot be read on: recovery.journal is not set",
                             number(which.request))};
  auto entry = setup_.journal->find(which.request);
  if (!entry)
    return entry.error();
  auto made = make_answer(entry->id, entry->wish, client);
  if (!made)
    return made.error();
  for (const auto& given : entry->answer)
    made->take(given);
  pieces_to(made->pieces());
  if (auto rest = made->rest(); !made->stopped() && !rest.text.empty())
    self_->send(client, std::move(rest));
  if (entry->end)
    self_->send(client, *entry->end);
  return which.request;
}

caf::result<request_id> conductor_state::take(const stream_attach& which,
                                              const caf::strong_actor_ptr& client) {
  if (!client)
    return to_caf({errc::invalid_argument, "a stream needs a client to go to"});
  auto found = find_stream(which, caf::actor_cast<client_actor>(client));
  if (!found)
    return to_caf(found.error());
  self_->monitor(client);
  log::debug("request {} is read on from token {}", number(which.request), which.offset);
  return *found;
}

} // namespace troupe::actors
