// bench_boundary (actors/cli/bench/bench_run.hpp): two processes, in each an actor on a reactor, as
// a rank has them. A tensor goes from actor to actor through codec, frames and UCX and back, as
// often as a block has rounds; then both move as many payloads by raw messages of UCX, within the
// same handler. With the digest that frames carry by default, and without.
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/message_turns.hpp"
#include "actors/control/system.hpp"
#include "actors/wires/codec.hpp"
#include "actors/wires/peer.hpp"
#include "actors/wires/reactor.hpp"
#include "config/cluster_file.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <array>

namespace troupe::cli {

namespace {

using actors::partition_input;
using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds deadline{60};
constexpr std::size_t blocks = 5;
constexpr std::chrono::milliseconds most_of_block{100}; ///< Of turns by actors.

struct tensor_size {
  std::uint32_t rows;
  std::uint32_t columns;
  std::uint32_t turns; ///< Of a block.

  std::size_t bytes() const { return std::size_t{rows} * columns * sizeof(float); }
};

constexpr std::array sizes{
  tensor_size{1, 16, 600}, tensor_size{1, 2048, 400}, tensor_size{32, 2048, 60}};

constexpr std::size_t raw = 0;
constexpr std::size_t by_actors = 1;

constexpr std::size_t kind_of(std::size_t size, std::size_t path) {
  return size * 2 + path;
}

/// What a tensor asks of who gets it; it travels in the place of a schema.
enum class cue : std::uint64_t { send_back, raw_turn, end };

/// The part of a rank's interface that a boundary needs.
using boundary_actor = caf::typed_actor<caf::reacts_to<partition_input, compute::buffer>>;

/// What an end of the road lives with.
struct boundary_setup {
  measuring_process* here = nullptr;
  actors::reactor* home = nullptr;
  transport::transport* wires = nullptr;
  transport::channel* raw = nullptr;
};

/// One end. Rank 0 leads and measures.
class boundary_end {
public:
  void start(boundary_actor::stateful_pointer<boundary_end> self, const boundary_setup& setup) {
    setup_ = setup;
    other_ = actors::peer_handle<boundary_actor>(self, *setup.wires, 1 - setup.here->rank);
    self_ = self;
    auto& system = self->system();
    setup.wires->on_frame([self, &system](transport::peer_key, transport::frame&& received) {
      if (auto message = actors::decode_message(system, std::move(received)))
        self->enqueue(nullptr, caf::make_message_id(), std::move(*message), nullptr);
    });
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      auto made = filled_buffer(sizes[size].bytes());
      check(made.has_value(), "a measure has memory");
      payloads_[size] = std::move(*made);
    }
    due_ = clock::now() + most_of_block;
    if (setup.here->rank == 0)
      send(cue::send_back, payloads_[0]);
  }

  void take(const partition_input& message, const compute::buffer& tensor) {
    transport::read_lines(tensor.data(), tensor.size());
    if (setup_.here->rank == 0)
      lead();
    else
      follow(static_cast<cue>(message.schema), tensor);
  }

private:
  void send(cue what, const compute::buffer& tensor) {
    const auto& size = sizes[size_of(tensor)];
    sent_ = clock::now();
    self_->send(other_,
                partition_input{epoch_id{1},
                                step_id{0},
                                size.rows,
                                size.columns,
                                static_cast<std::uint8_t>(dtype::f32),
                                static_cast<std::uint64_t>(what)},
                tensor);
  }

  static std::size_t size_of(const compute::buffer& tensor) {
    std::size_t size = 0;
    while (sizes[size].bytes() != tensor.size())
      ++size;
    return size;
  }

  void follow(cue what, const compute::buffer& tensor) {
    const auto size = size_of(tensor);
    switch (what) {
    case cue::send_back: send(cue::send_back, payloads_[size]); break;
    case cue::raw_turn:
      one_way_us(*setup_.raw, *setup_.here, payloads_[size], sizes[size].turns);
      break;
    case cue::end: setup_.home->stop(); break;
    }
  }

  void lead() {
    const std::chrono::duration<double, std::micro> taken = clock::now() - sent_;
    const auto turns = sizes[size_].turns;
    const bool is_last = ++turn_ == turns || clock::now() > due_;
    if (turn_ > turns / 10 || is_last) // The first ones are not counted.
      times_.push_back(taken.count() / 2);
    if (is_last)
      end_block();
    if (size_ < sizes.size())
      send(cue::send_back, payloads_[size_]);
    else
      end();
  }

  void end_block() {
    setup_.here->board.add(kind_of(size_, by_actors), median_of(std::exchange(times_, {})));
    send(cue::raw_turn, payloads_[size_]);
    setup_.here->board.add(
      kind_of(size_, raw),
      one_way_us(*setup_.raw, *setup_.here, payloads_[size_], sizes[size_].turns));
    turn_ = 0;
    due_ = clock::now() + most_of_block;
    if (++block_ == blocks) {
      block_ = 0;
      ++size_;
    }
  }

  void end() {
    send(cue::end, payloads_[0]);
    setup_.home->stop();
  }

  boundary_setup setup_;
  boundary_actor::stateful_pointer<boundary_end> self_ = nullptr;
  boundary_actor other_;
  std::array<compute::buffer, sizes.size()> payloads_;
  clock::time_point sent_;
  std::vector<double> times_; ///< Of this block, one way.
  std::size_t turn_ = 0;
  clock::time_point due_; ///< When this block ends at the latest.
  std::size_t block_ = 0;
  std::size_t size_ = 0;
};

class boundary_on_reactor : public actors::on_reactor<boundary_actor::stateful_base<boundary_end>> {
public:
  boundary_on_reactor(caf::actor_config& config, actors::reactor& home, const boundary_setup& setup)
    : on_reactor(config, home) {
    state.start(this, setup);
  }

  boundary_actor::behavior_type make_behavior() override {
    return {[this](const partition_input& message, const compute::buffer& tensor) {
      state.take(message, tensor);
    }};
  }
};

/// A kind of wires between the two.
struct boundary_wires {
  std::string name;
  std::string transports; ///< As in UCX_TLS.
  bool digest;
};

result<std::unique_ptr<transport::transport>> make_wires(const boundary_wires& wanted) {
  transport::ucx_options options;
  options.transports = wanted.transports;
  options.digest = wanted.digest;
  if (wanted.transports == transport::tcp_transports)
    options.devices = {"lo"};
  return transport::make_ucx_transport(options);
}

result<void> measure(measuring_process& here, const boundary_wires& wanted) {
  const auto rank = here.rank;
  auto& board = here.board;
  const auto settings = parse_cluster_text(demo_cluster_text(), "the demo");
  if (!settings)
    return settings.error();
  auto plane = actors::control_plane::start(*settings);
  if (!plane)
    return plane.error();
  auto raw_wires = transport::make_raw_channel(wanted.transports);
  if (!raw_wires)
    return raw_wires.error();
  actors::reactor_options loop;
  loop.spin = std::chrono::microseconds(50);
  actors::reactor home(loop);
  const auto wires = home.open([&] { return make_wires(wanted); });
  if (!wires)
    return wires.error();
  if (auto joined = join_channels(**raw_wires, 0, here); !joined)
    return joined;
  (*wires)->start_epoch(epoch_id{1}, rank, {});
  board.put_address(rank, 1, (*wires)->address().bytes);
  board.meet(2);
  const auto there = board.address(1 - rank, 1);
  if (auto joined = (*wires)->connect(1 - rank, {{there.begin(), there.end()}}); !joined)
    return joined;
  const auto end = (*plane)->system().spawn<boundary_on_reactor>(
    std::ref(home), boundary_setup{&here, &home, *wires, raw_wires->get()});
  home.run((*plane)->system());
  part_channels({raw_wires->get()}, here);
  return {};
}

result<void> measure_wires(bench_run& run, const boundary_wires& wanted) {
  if (auto on = run.begin("the boundary through " + wanted.name); !on)
    return on;
  const auto values =
    run_processes(2, deadline, [&](measuring_process& here) { return measure(here, wanted); });
  if (!values)
    return with_context("the boundary through " + wanted.name, values.error());
  for (std::size_t size = 0; size < sizes.size(); ++size)
    run.add(row_beside(
      row_of("boundary",
             fmt::format("{} from actor to actor, {}", size_text(sizes[size].bytes()), wanted.name),
             "us",
             {}),
      (*values)[kind_of(size, by_actors)],
      (*values)[kind_of(size, raw)],
      "raw UCX active messages"));
  return {};
}

} // namespace

result<void> bench_boundary(bench_run& run) {
  for (const auto& wires :
       {boundary_wires{"shared memory", transport::shared_memory_transports, true},
        boundary_wires{"shared memory, no digest", transport::shared_memory_transports, false},
        boundary_wires{"loopback TCP", transport::tcp_transports, true},
        boundary_wires{"loopback TCP, no digest", transport::tcp_transports, false}})
    if (auto measured = measure_wires(run, wires); !measured)
      return measured;
  return {};
}

} // namespace troupe::cli
