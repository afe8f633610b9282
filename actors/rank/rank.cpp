#include "actors/rank/rank.hpp"

#include "actors/rank/rank_state.hpp"
#include "actors/wires/codec.hpp"
#include "actors/wires/peer.hpp"
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
  remember_state();
  auto held = partition_ ? partition_->weights() : compute::held_weights{};
  partition_.reset(); // before the memory of another one is asked for
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
  log::info("rank {} computes on {}; weights are held as {}{}",
            number(setup.rank),
            device_->describe(),
            to_string(setup.hold.weights),
            setup.hold.state == dtype::f32
              ? ""
              : fmt::format(", keys and values as {}", to_string(setup.hold.state)));
  group_ = tensor_group::unjoined(what.tensor, what.tensor_size);
  compute::partition_record record;
  record.units = {what.first_unit, what.last_unit};
  record.owns_input = what.stage == 0;
  record.owns_output = what.stage + 1 == what.pipeline_size;
  record.tensor_rank = what.tensor;
  record.tensor_size = what.tensor_size;
  auto& board = *setup.board;
  auto loaded = compute::partition::load(
    setup.model,
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
    },
    std::move(held));
  if (!loaded)
    return with_context(fmt::format("rank {}", number(setup.rank)), loaded.error());
  partition_ = std::move(*loaded);
  if (!takes_back_state(record, what.pages)) {
    auto state = partition_->make_state(what.pages);
    if (!state)
      return with_context(fmt::format("rank {}: state of {} pages", number(setup.rank), what.pages),
                          state.error());
    state_ = std::move(*state);
    kept_ = take_back_rows(record, what.pages);
  }
  if (setup.keep_boundaries && !record.owns_output && !kept_) {
    auto kept = boundary_log::make(what.pages, setup.model->shape().hidden * size_of(setup.wire));
    if (!kept)
      return with_context(fmt::format("rank {}", number(setup.rank)), kept.error());
    kept_ = std::move(*kept);
  }
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
    [&my](const state_manifest& m) {
      return my.step(input::state_manifest, std::nullopt, [&] { my.take(m); });
    },
    [&my](const state_page& m, const compute::buffer& bytes) {
      return my.step(input::state_page, std::nullopt, [&] { my.take(m, bytes); });
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
    [&my](const peer_down& m) -> caf::result<void> {
      if (my.has_left(m.peer))
        return caf::unit;
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
