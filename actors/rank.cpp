#include "actors/rank.hpp"

#include "actors/codec.hpp"
#include "actors/peer.hpp"
#include "actors/rank_state.hpp"
#include "compute/faults/faulty_device.hpp"
#include "transport/host_identity.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>

namespace troupe::actors {

void rank_state::start(self_pointer actor, rank_setup given) {
  self_ = actor;
  setup = std::move(given);
  attend(*setup.wires);
  setup.home->on_round([this] { look_for_peers(); });
}

void rank_state::enter(rank_input input, rank_phase next) {
  if (phase_ != next)
    log::trace("rank {} epoch {}: {} --{}--> {}",
               number(setup.rank),
               number(epoch_),
               rank_phases.name(phase_),
               rank_phases.name(input),
               rank_phases.name(next));
  const bool changes = phase_ != next;
  phase_ = next;
  setup.board->phase.store(next, std::memory_order_relaxed);
  rank_board::add(setup.board->progress, 1);
  if (changes)
    setup.last_deeds->note({recorded::phase, static_cast<std::uint8_t>(next), 0, 0, 0});
  if (auto* injector = faults(); injector && changes)
    injector->enter_phase(rank_phases.name(next));
}

void rank_state::refuse(rank_input input) {
  log::warn("rank {} epoch {} refuses {} while {}",
            number(setup.rank),
            number(epoch_),
            rank_phases.name(input),
            rank_phases.name(phase_));
}

void rank_state::give_up(rank_input input, const error& why) {
  const auto phase = std::string{rank_phases.name(phase_)};
  const auto step_now = step_.step;
  step(input, std::nullopt, [&] {
    log::error("rank {} epoch {} step {} gives up while {}: {}",
               number(setup.rank),
               number(epoch_),
               number(step_now),
               phase,
               why.what);
    if (partition_)
      partition_->abandon();
    group_.abort(with_context(fmt::format("rank {} gave up", number(setup.rank)), why));
    self_->send(
      setup.node,
      rank_fault{
        setup.rank, epoch_, step_now, phase, static_cast<std::uint8_t>(why.code), why.what});
  });
}

// -- loading --------------------------------------------------------------------------------------

void rank_state::load(const shard_assignment& what) {
  assignment_ = what;
  setup.rank = what.rank;
  const auto begin = clock::now();
  if (auto loaded = load_shard(what); !loaded) {
    give_up(rank_input::load_failed, loaded.error());
    return;
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - begin);
  step(rank_input::load_succeeded, std::nullopt, [&] {
    report_loaded(static_cast<std::uint64_t>(took.count()));
  });
}

result<void> rank_state::load_shard(const shard_assignment& what) {
  state_ = {};
  partition_.reset(); // before the memory of another one is asked for
  kept_.reset();
  if (!device_) {
    auto device = compute::make_device(setup.device, setup.device_options);
    if (!device)
      return device.error();
    device_ =
      faults() ? compute::make_faulty_device(std::move(*device), *faults()) : std::move(*device);
  }
  if (auto* injector = faults()) {
    injector->move_to(number(what.rank));
    injector->begin_load();
  }
  log::info("rank {} computes on {}; weights are held as {}",
            number(setup.rank),
            device_->describe(),
            to_string(setup.hold));
  group_ = tensor_group::unjoined(what.tensor, what.tensor_size);
  compute::partition_record record;
  record.units = {what.first_unit, what.last_unit};
  record.owns_input = what.stage == 0;
  record.owns_output = what.stage + 1 == what.pipeline_size;
  record.tensor_rank = what.tensor;
  record.tensor_size = what.tensor_size;
  auto& board = *setup.board;
  auto loaded =
    compute::partition::load(setup.model,
                             record,
                             setup.hold,
                             *device_,
                             group_.operations(),
                             [&board, injector = faults()](std::size_t done, std::size_t total) {
                               rank_board::set(board.load_done_bytes, done);
                               rank_board::set(board.load_total_bytes, total);
                               rank_board::add(board.progress, 1);
                               if (injector)
                                 injector->load(done, total);
                             });
  if (!loaded)
    return with_context(fmt::format("rank {}", number(setup.rank)), loaded.error());
  partition_ = std::move(*loaded);
  auto state = partition_->make_state(what.pages);
  if (!state)
    return with_context(fmt::format("rank {}: state of {} pages", number(setup.rank), what.pages),
                        state.error());
  state_ = std::move(*state);
  if (setup.keep_boundaries && what.stage + 1 < what.pipeline_size) {
    auto kept = boundary_log::make(what.pages, setup.model->shape().hidden * size_of(setup.wire));
    if (!kept)
      return with_context(fmt::format("rank {}", number(setup.rank)), kept.error());
    kept_ = std::move(*kept);
  }
  slots_.clear();
  std::random_device random;
  life_ = (std::uint64_t{random()} << 32) | random();
  rank_board::set(board.bytes_held, partition_->report().bytes_held);
  rank_board::set(board.state_bytes,
                  (state_.cache ? state_.cache->bytes() : 0) + (kept_ ? kept_->bytes() : 0));
  segment_.reset();
  if (what.tensor == 0) {
    auto segment = make_group_segment(what.tensor_size);
    if (!segment)
      return segment.error();
    segment_ = std::move(*segment);
  }
  return {};
}

byte_string rank_state::own_address() const {
  byte_string told;
  for (const auto byte : setup.wires->address().bytes)
    told.push_back(std::to_integer<std::uint8_t>(byte));
  return told;
}

byte_string rank_state::own_segment() const {
  byte_string told;
  if (segment_)
    for (const auto byte : segment_->describe())
      told.push_back(std::to_integer<std::uint8_t>(byte));
  return told;
}

void rank_state::report_loaded(std::uint64_t load_us) {
  rank_loaded report;
  report.index = assignment_.index;
  report.serial = assignment_.serial;
  report.rank = setup.rank;
  report.address = own_address();
  report.host = transport::memory_domain(setup.transports);
  report.segment = own_segment();
  report.life = life_;
  report.bytes_read = partition_->report().bytes_read;
  report.bytes_held = partition_->report().bytes_held;
  report.load_us = load_us;
  for (const auto& part : partition_->report().digests)
    report.digests.push_back({fmt::format("{}[{}:{}, {}:{}]",
                                          part.tensor,
                                          part.rows.begin,
                                          part.rows.end,
                                          part.columns.begin,
                                          part.columns.end),
                              compute::to_string(part.digest)});
  self_->send(setup.node, std::move(report));
}

// -- epochs ---------------------------------------------------------------------------------------

rank_id rank_state::neighbour(std::uint32_t stage, std::uint32_t tensor) const {
  return static_cast<rank_id>(stage * plan_.tensor_size + tensor);
}

const rank_address& rank_state::address_of(rank_id rank) const {
  return plan_.ranks.at(number(rank));
}

result<void> rank_state::connect_neighbours(const epoch_plan& plan) {
  transport::epoch_token token{};
  for (std::size_t i = 0; i < token.size() && i < plan.token.size(); ++i)
    token[i] = static_cast<std::byte>(plan.token[i]);
  setup.wires->start_epoch(plan.epoch, number(setup.rank), token);
  awaited_.clear();
  const auto connect = [&](transport::peer_key key, const byte_string& bytes) -> result<void> {
    transport::peer_address where;
    for (const auto byte : bytes)
      where.bytes.push_back(static_cast<std::byte>(byte));
    awaited_.push_back(key);
    return setup.wires->connect(key, where);
  };
  const auto meet = [&](rank_id other) -> result<void> {
    if (setup.here->find(other))
      return {};
    return connect(number(other), address_of(other).address);
  };
  if (assignment_.stage > 0)
    if (auto met = meet(neighbour(assignment_.stage - 1, assignment_.tensor)); !met)
      return met;
  if (assignment_.stage + 1 < plan.pipeline_size) {
    const auto other = neighbour(assignment_.stage + 1, assignment_.tensor);
    if (auto met = meet(other); !met)
      return met;
    next_ = setup.here->find(other);
    if (!next_)
      next_ = peer_handle<rank_actor>(self_, *setup.wires, number(other));
  }
  conductor_ = setup.here->conductor();
  if (!conductor_) {
    if (auto met = connect(transport::conductor_key, plan.conductor); !met)
      return met;
    conductor_ = peer_handle<conductor_actor>(self_, *setup.wires, transport::conductor_key);
  }
  group_place place;
  place.members = group_members();
  if (!share_memory(place.members))
    for (std::uint32_t t = 0; t < plan.tensor_size; ++t)
      if (t != assignment_.tensor)
        if (auto met = connect(number(place.members[t].rank), place.members[t].address); !met)
          return met;
  place.epoch = plan.epoch;
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
  setup.last_deeds->set_place(epoch_, step_id{});
  rank_board::set(setup.board->epoch, number(epoch_));
  join_until_ = clock::now() + setup.connect_deadline;
  if (auto connected = connect_neighbours(plan); !connected)
    give_up(rank_input::peer_down, connected.error());
  else
    look_for_peers();
}

void rank_state::look_for_peers() {
  count_wires();
  if (phase_ != rank_phase::joining)
    return;
  std::erase_if(awaited_, [this](transport::peer_key peer) { return setup.wires->heard(peer); });
  if (awaited_.empty()) {
    self_->send(rank_actor{self_}, peers_heard{epoch_});
  } else if (clock::now() > join_until_) {
    give_up(rank_input::peer_down,
            {errc::timed_out,
             fmt::format("rank {} did not hear from {} of its neighbours (the first is {}) within "
                         "{} ms of the epoch's start",
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

void rank_state::stop() {
  if (partition_)
    partition_->abandon();
  next_.reset();
  conductor_.reset();
  setup.home->on_round(nullptr);
  setup.wires->on_frame(nullptr);
  setup.wires->on_down(nullptr);
  setup.home->stop();
  self_->quit();
}

// -- behaviour ------------------------------------------------------------------------------------

namespace {

rank_actor::behavior_type rank(rank_state::self_pointer self) {
  auto& my = self->state;
  using input = rank_input;
  return {
    [&my](const shard_assignment& m) {
      return my.step(input::assignment, std::nullopt, [&] { my.load(m); });
    },
    [&my](const epoch_plan& m) {
      return my.step(input::epoch_plan, std::nullopt, [&] { my.join(m); });
    },
    [&my](const peers_heard& m) {
      return my.step(input::peers_heard, m.epoch, [&] { my.serve(); });
    },
    [&my](const step_tokens& m) {
      return my.step(input::step_tokens, m.plan.epoch, [&] { my.begin_with_tokens(m); });
    },
    [&my](const step_rows& m) {
      return my.step(input::step_rows, m.plan.epoch, [&] { my.expect_rows(m); });
    },
    [&my](const rows_again& m) {
      return my.step(input::rows_again, m.plan.epoch, [&] { my.send_again(m.plan); });
    },
    [&my](const slots_released& m) {
      return my.step(input::slots_released, m.epoch, [&] { my.release(m.slots); });
    },
    [&my](const partition_input& m, const compute::buffer& tensor) {
      return my.step(input::partition_input, m.epoch, [&] { my.begin_with_rows(m, tensor); });
    },
    [&my](const unit_due&) {
      return my.step(input::unit_due, std::nullopt, [&] { my.run_unit(); });
    },
    [&my](const group_leave&) {
      return my.step(input::group_leave, std::nullopt, [&] { my.leave_group(); });
    },
    [&my](const pass_finish&) {
      return my.step(input::pass_finish, std::nullopt, [&] { my.finish_pass(); });
    },
    [&my](const peer_down& m) {
      return my.step(input::peer_down, std::nullopt, [&] { my.lose_peer(m); });
    },
    [&my](const fence& m) { return my.step(input::fence, m.epoch, [&] { my.end_epoch(m); }); },
    [&my](const fault_order& m) { my.take(m); },
    [&my](const trace_order& m) { my.take(m); },
    [&my](const node_stop&) { return my.step(input::stop, std::nullopt, [&] { my.stop(); }); },
  };
}

class rank_on_reactor : public on_reactor<rank_actor::stateful_base<rank_state>> {
public:
  rank_on_reactor(caf::actor_config& config, reactor& home, rank_setup setup)
    : on_reactor(config, home) {
    state.start(this, std::move(setup));
  }

  rank_actor::behavior_type make_behavior() override { return rank(this); }
};

} // namespace

rank_actor spawn_rank(caf::actor_system& system, rank_setup setup) {
  auto& home = *setup.home;
  return system.spawn<rank_on_reactor>(std::ref(home), std::move(setup));
}

} // namespace troupe::actors
