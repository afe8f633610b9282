// An epoch from a rank's side: it meets its neighbours, serves, and forgets them.

#include "actors/rank/rank_state.hpp"
#include "actors/wires/peer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace troupe::actors {

rank_id rank_state::neighbour(std::uint32_t stage, std::uint32_t tensor) const {
  return static_cast<rank_id>(stage * plan_.tensor_size + tensor);
}

const rank_address& rank_state::address_of(rank_id rank) const {
  return plan_.ranks.at(number(rank));
}

result<void> rank_state::connect(transport::peer_key key, const byte_string& address) {
  if (std::find(awaited_.begin(), awaited_.end(), key) != awaited_.end())
    return {};
  transport::peer_address where;
  for (const auto byte : address)
    where.bytes.push_back(static_cast<std::byte>(byte));
  awaited_.push_back(key);
  return setup.wires->connect(key, where);
}

/// A rank of this process needs no wires.
result<void> rank_state::meet(rank_id other) {
  if (setup.here->find(other))
    return {};
  return connect(number(other), address_of(other).address);
}

result<void> rank_state::connect_neighbours() {
  if (assignment_.stage > 0)
    if (auto met = meet(neighbour(assignment_.stage - 1, assignment_.tensor)); !met)
      return met;
  if (assignment_.stage + 1 < plan_.pipeline_size) {
    const auto other = neighbour(assignment_.stage + 1, assignment_.tensor);
    if (auto met = meet(other); !met)
      return met;
    next_ = handle_of(other);
  }
  conductor_ = setup.here->conductor();
  if (!conductor_) {
    if (auto met = connect(transport::conductor_key, plan_.conductor); !met)
      return met;
    conductor_ = peer_handle<conductor_actor>(self_, *setup.wires, transport::conductor_key);
  }
  return join_group();
}

rank_actor rank_state::handle_of(rank_id other) const {
  const auto here = setup.here->find(other);
  return here ? *here : peer_handle<rank_actor>(self_, *setup.wires, number(other));
}

result<void> rank_state::join_group() {
  group_place place;
  place.members = group_members();
  if (!share_memory(place.members))
    for (std::uint32_t t = 0; t < plan_.tensor_size; ++t)
      if (t != assignment_.tensor)
        if (auto met = connect(number(place.members[t].rank), place.members[t].address); !met)
          return met;
  place.epoch = plan_.epoch;
  place.tensor_rank = assignment_.tensor;
  place.deadline = setup.step_deadline;
  auto group =
    tensor_group::join(place, *setup.wires, *setup.board, *setup.last_deeds, trace_, faults());
  if (!group)
    return group.error();
  group_ = std::move(*group);
  partition_->use_group(group_.operations());
  return {};
}

void rank_state::join(const epoch_plan& plan) {
  plan_ = plan;
  epoch_ = plan.epoch;
  setup.rank = own_number(plan);
  setup.last_deeds->set_place(epoch_, step_id{});
  rank_board::set(setup.board->epoch, number(epoch_));
  join_until_ = clock::now() + setup.connect_deadline;
  transport::epoch_token token{};
  for (std::size_t i = 0; i < token.size() && i < plan.token.size(); ++i)
    token[i] = static_cast<std::byte>(plan.token[i]);
  setup.wires->start_epoch(plan.epoch, number(setup.rank), token);
  awaited_.clear();
  auto joined = leaves() ? result<void>{} : connect_neighbours();
  if (joined && plan.restaged != 0)
    joined = begin_moves();
  if (!joined)
    give_up(rank_input::peer_down, joined.error());
  else
    look_for_peers();
}

void rank_state::look_for_peers() {
  count_wires();
  if (phase_ != rank_phase::joining)
    return;
  std::erase_if(awaited_, [this](transport::peer_key peer) { return setup.wires->heard(peer); });
  if (auto sent = send_state(); !sent) {
    give_up(rank_input::peer_down, sent.error());
  } else if (awaited_.empty() && state_is_here()) {
    self_->send(rank_actor{self_}, peers_heard{epoch_});
  } else if (clock::now() > join_until_) {
    give_up(rank_input::peer_down,
            {errc::timed_out,
             awaited_.empty()
               ? fmt::format("rank {} waited {} ms for state that was to come from other ranks",
                             number(setup.rank),
                             setup.connect_deadline.count())
               : fmt::format("rank {} did not hear from {} of its neighbours (the first is {}) "
                             "within {} ms of the epoch's start",
                             number(setup.rank),
                             awaited_.size(),
                             transport::name_peer(awaited_.front()),
                             setup.connect_deadline.count())});
  }
}

std::vector<rank_address> rank_state::group_members() const {
  std::vector<rank_address> members;
  for (std::uint32_t t = 0; t < plan_.tensor_size; ++t)
    members.push_back(address_of(neighbour(assignment_.stage, t)));
  return members;
}

std::set<std::string> rank_state::group_wires() const {
  const auto members = group_members();
  if (share_memory(members))
    return {"shared memory"};
  std::set<std::string> wires;
  for (const auto& member : members)
    if (member.rank != setup.rank) {
      const auto link = setup.wires->link(number(member.rank));
      wires.insert(link ? link->transports : link.error().what);
    }
  return wires;
}

void rank_state::serve() {
  if (leaves())
    return; // what it held is with others now
  if (plan_.restaged != 0) {
    settle_state();
    report_state();
  }
  std::string links;
  const auto add = [&](std::string_view what, transport::peer_key key, bool local) {
    const auto link = local
                        ? result<transport::link_info>{transport::link_info{"same process", true}}
                        : setup.wires->link(key);
    links += fmt::format(
      "{}{} {}", links.empty() ? "" : ", ", what, link ? link->transports : link.error().what);
  };
  if (assignment_.stage + 1 < plan_.pipeline_size) {
    const auto other = neighbour(assignment_.stage + 1, assignment_.tensor);
    add(
      fmt::format("to rank {}", number(other)), number(other), setup.here->find(other).has_value());
  } else if (assignment_.tensor == 0) {
    add("to conductor", transport::conductor_key, setup.here->conductor().has_value());
  }
  if (plan_.tensor_size > 1) {
    links += fmt::format(
      "{}tensor group over {}", links.empty() ? "" : ", ", fmt::join(group_wires(), " and "));
  }
  pass_end_ = clock::now();
  self_->send(setup.node, rank_joined{setup.rank, epoch_, std::move(links)});
}

void rank_state::lose_peer(const peer_down& message) {
  // The door has moved the rank to `fenced`; what is left is to say why.
  if (message.code == static_cast<std::uint8_t>(errc::cancelled)) // A goodbye is no failure.
    log::info("rank {} epoch {}: {}", number(setup.rank), number(epoch_), message.what);
  else
    log::error("rank {} epoch {} lost {}: {}",
               number(setup.rank),
               number(epoch_),
               transport::name_peer(message.peer),
               message.what);
  if (partition_)
    partition_->abandon();
  self_->send(setup.node,
              rank_fault{setup.rank, epoch_, step_.step, "connected", message.code, message.what});
}

void rank_state::end_epoch(const fence& message) {
  log::info("rank {} epoch {} is over: {}", number(setup.rank), number(epoch_), message.reason);
  if (partition_)
    partition_->abandon();
  next_.reset();
  conductor_.reset();
  forget_moves();
  step_ = {};
  epoch_ = {};
  trace_.forget_open();
  // A group and wires that have seen a fault are not used again.
  group_ = tensor_group::unjoined(assignment_.tensor, assignment_.tensor_size);
  if (partition_)
    partition_->use_group(group_.operations());
  setup.home->renew_wires(
    [this](result<transport::transport*> made) { take_new_wires(std::move(made)); });
}

void rank_state::take_new_wires(result<transport::transport*> made) {
  auto segment = assignment_.tensor == 0
                   ? make_group_segment(assignment_.tensor_size)
                   : result<std::optional<transport::shared_segment>>{std::nullopt};
  if (!made || !segment) {
    const auto& why = made ? segment.error() : made.error();
    log::error("rank {} gets no new wires: {}", number(setup.rank), why.what);
    self_->send(setup.node,
                rank_fault{setup.rank,
                           epoch_id{},
                           step_id{},
                           std::string{rank_phases.name(rank_phase::loading)},
                           static_cast<std::uint8_t>(why.code),
                           why.what});
    return;
  }
  attend(**made);
  segment_ = std::move(*segment);
  self_->send(setup.node,
              rank_rewired{setup.rank, assignment_.index, own_address(), own_segment()});
}

} // namespace troupe::actors
