#include "actors/node/node_state.hpp"

#include "actors/control/run_folder.hpp"
#include "actors/control/system.hpp"
#include "actors/host/host_network.hpp"
#include "actors/node/clock_offset.hpp"
#include "actors/rank/recorder.hpp"
#include "actors/rank/tracer.hpp"
#include "config/log.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

constexpr std::chrono::milliseconds longest_beat{200};
/// Beats within the bound after which a silent node is given up.
constexpr int beats_in_bound = 5;
/// A director that leaves beats unanswered for so many times the progress bound is out of reach:
/// several times, since by then it has replaced this node if it is there.
constexpr int silent_bounds = 3;

class node_state {
public:
  static inline const char* name = "node";
  using self_pointer = node_actor::stateful_pointer<node_state>;

  node_state() = default;

  void start(self_pointer actor, node_setup given);
  void host(const node_assignment& work);
  void beat();

  void hear() { heard_ = clock::now(); }

  void hear(const beat_heard& answer);
  void pass_on(trace_part part);

  void follow(const caf::strong_actor_ptr& door);
  void pass_on(const rank_loaded& report);
  void pass_on(const rank_rewired& report);

  void begin_epoch(const epoch_plan& plan);
  void end_epoch(const fence& over);
  template <class Message>
  void to_conductor(const Message& message);
  template <class Message>
  void to_ranks(const Message& message);
  template <class Message>
  void to_director(const Message& message);
  void inject(const fault_order& order);
  void write_records(const std::string& reason) const;
  void end(const node_stop& order);
  void lose_director(const std::string& how);

private:
  using clock = std::chrono::steady_clock;

  struct hosted {
    std::unique_ptr<rank_board> board;
    std::unique_ptr<fault_desk> faults;
    std::unique_ptr<recorder> last_deeds;
    rank_actor handle;
    std::unique_ptr<reactor_thread> thread; ///< Ends before what is above.
    held_shard held;                        ///< Its report is of this shard when the serials agree.
    bool in_epoch = false;                  ///< Until it has new wires, after the epoch's end.
  };

  result<void> host_rank(const shard_assignment& what);
  result<void> start_rank(const shard_assignment& what, hosted& one);
  void stay_without_head(const error& why);
  void tell_orphaned();
  std::vector<unsigned> cores_of(std::size_t index_in_node) const;

  self_pointer self_ = nullptr;
  node_setup setup_;
  std::optional<director_actor> director_; ///< Whoever gives this node work.
  std::map<std::uint32_t, hosted> ranks_;  ///< By their index on this node.
  std::chrono::milliseconds beat_interval_{};
  clock::time_point beaten_ = clock::now(); ///< The last beat.
  clock::time_point heard_ = clock::now();  ///< The director's last answer to one.
  clock_offset clock_;                      ///< Of the head.
  std::vector<trace_part> unclocked_;       ///< From before it was known.
  epoch_id epoch_{};                        ///< The last one.
  std::optional<clock::time_point> orphaned_since_;
  bool told_orphaned_ = false;
  std::uint64_t run_ = 0;
  bool ending_ = false;
};

void node_state::start(self_pointer actor, node_setup given) {
  self_ = actor;
  setup_ = std::move(given);
  self_->set_down_handler([this](const caf::down_msg&) { lose_director("is gone"); });
  self_->monitor(setup_.gateway);
  const std::chrono::milliseconds bound{setup_.settings->deadlines.progress_ms};
  beat_interval_ = std::min(longest_beat, bound / beats_in_bound);
  self_->delayed_send(node_actor{self_}, beat_interval_, tick{});
}

std::vector<unsigned> node_state::cores_of(std::size_t index_in_node) const {
  std::vector<unsigned> cores;
  if (setup_.settings->nodes[setup_.index].pin)
    for (std::size_t i = 0; i < setup_.threads; ++i)
      cores.push_back(static_cast<unsigned>(index_in_node * setup_.threads + i));
  return cores;
}

result<void> node_state::host_rank(const shard_assignment& what) {
  auto& one = ranks_[what.index];
  if (!one.thread)
    if (auto started = start_rank(what, one); !started)
      return started;
  one.board->rank = what.rank;
  one.held.what = what;
  self_->send(one.handle, what);
  return {};
}

result<void> node_state::start_rank(const shard_assignment& what, hosted& one) {
  const auto& settings = *setup_.settings;
  one.board = std::make_unique<rank_board>();
  one.last_deeds = std::make_unique<recorder>();
  one.faults = std::make_unique<fault_desk>(
    number(what.rank), fault_book(setup_.run_folder, settings.nodes[setup_.index].name), run_);
  one.faults->add(setup_.faults);
  rank_setup born;
  born.rank = what.rank;
  born.model = setup_.model;
  born.grammars = setup_.grammars;
  born.hold = setup_.hold;
  born.wire = settings.parallel.wire_dtype;
  born.max_rows = setup_.max_rows;
  born.keep_boundaries = settings.recovery.keep_boundaries;
  born.device = settings.nodes[setup_.index].device;
  if (setup_.hub == nullptr)
    born.transports = settings.nodes[setup_.index].transports;
  born.device_options.threads = setup_.threads;
  born.device_options.cores = cores_of(what.index);
  born.device_options.pulse = &one.board->progress;
  born.step_deadline = std::chrono::milliseconds{settings.deadlines.step_ms};
  born.connect_deadline = std::chrono::milliseconds{settings.deadlines.connect_ms};
  born.board = one.board.get();
  born.here = setup_.here;
  born.faults = one.faults.get();
  born.last_deeds = one.last_deeds.get();
  born.settings = &settings;
  born.node = node_actor{self_};
  reactor_thread::options thread;
  thread.name = fmt::format("rank {}", number(what.rank));
  thread.loop = setup_.loop;
  auto& system = self_->system();
  auto started = reactor_thread::start(
    system,
    thread,
    [&settings, index = setup_.index, hub = setup_.hub, faults = one.faults.get()] {
      return make_wires(settings, index, hub, *faults);
    },
    [&](reactor& home, transport::transport& wires) {
      born.home = &home;
      born.wires = &wires;
      one.handle = spawn_rank(system, std::move(born));
    });
  if (!started)
    return with_context(thread.name, started.error());
  one.thread = std::move(*started);
  return {};
}

/// Ranks of this process find each other by their numbers in the plan.
void node_state::begin_epoch(const epoch_plan& plan) {
  std::map<rank_id, rank_actor> here;
  for (const auto& where : plan.ranks)
    if (where.node == setup_.index)
      if (const auto found = ranks_.find(where.index); found != ranks_.end())
        here.emplace(where.rank, found->second.handle);
  const bool takes_part =
    !here.empty() || std::any_of(plan.leavers.begin(), plan.leavers.end(), [this](const auto& one) {
      return one.node == setup_.index;
    });
  setup_.here->set(std::move(here));
  to_conductor(plan);
  if (!takes_part)
    return;
  epoch_ = plan.epoch;
  for (auto& [index, one] : ranks_)
    one.in_epoch = true;
  to_ranks(plan);
}

void node_state::pass_on(const rank_loaded& report) {
  if (const auto found = ranks_.find(report.index); found != ranks_.end())
    found->second.held.report = report;
  to_director(report);
}

void node_state::pass_on(const rank_rewired& report) {
  if (const auto found = ranks_.find(report.index); found != ranks_.end()) {
    found->second.in_epoch = false;
    found->second.held.report.address = report.address;
    found->second.held.report.segment = report.segment;
  }
  to_director(report);
  tell_orphaned();
}

void node_state::hear(const beat_heard& answer) {
  hear();
  clock_.hear(answer.sent_ns, answer.heard_ns, steady_ns(heard_));
  for (auto& part : std::exchange(unclocked_, {}))
    pass_on(std::move(part));
}

/// By the head's clock from here on. Before that is known, it waits.
void node_state::pass_on(trace_part part) {
  if (!clock_.known()) {
    unclocked_.push_back(std::move(part));
    return;
  }
  part.node = setup_.settings->nodes[setup_.index].name;
  part.uncertain_ns = clock_.uncertain_ns();
  const auto offset = static_cast<std::uint64_t>(clock_.offset_ns()); // wraps as it should
  for (auto& step : part.steps)
    for (auto& span : step.spans) {
      span.begin_ns += offset;
      span.end_ns += offset;
    }
  to_director(part);
}

// -- without a head -------------------------------------------------------------------------------

/// Where the head keeps a journal it will come back: the shards stay loaded for it.
void node_state::stay_without_head(const error& why) {
  log::warn("node keeps its shards and waits for another head: {}", why.what);
  director_.reset();
  setup_.gateway = gateway_actor{};
  orphaned_since_ = clock::now();
  end_epoch(fence{epoch_, why.what});
  tell_orphaned();
}

void node_state::tell_orphaned() {
  if (!orphaned_since_ || told_orphaned_)
    return;
  std::vector<held_shard> held;
  for (const auto& [index, one] : ranks_) {
    if (one.in_epoch)
      return; // its wires are not new yet
    if (one.held.report.serial == one.held.what.serial && one.held.what.serial != 0)
      held.push_back(one.held);
  }
  told_orphaned_ = true;
  setup_.on_orphaned(std::move(held), epoch_);
}

void node_state::follow(const caf::strong_actor_ptr& door) {
  orphaned_since_.reset();
  told_orphaned_ = false;
  setup_.gateway = caf::actor_cast<gateway_actor>(door);
  self_->monitor(door);
}

void node_state::host(const node_assignment& work) {
  director_ = caf::actor_cast<director_actor>(self_->current_sender());
  hear();
  run_ = work.run;
  for (const auto& what : work.ranks) {
    log::info("node hosts rank {}: stage {} of {}, tensor {} of {}, layers {} to {}",
              number(what.rank),
              what.stage,
              what.pipeline_size,
              what.tensor,
              what.tensor_size,
              what.first_unit,
              what.last_unit);
    if (auto started = host_rank(what); !started)
      to_director(rank_fault{what.rank,
                             epoch_id{},
                             step_id{},
                             std::string{rank_phases.name(rank_phase::loading)},
                             static_cast<std::uint8_t>(started.error().code),
                             started.error().what});
  }
}

void node_state::beat() {
  const auto now = clock::now();
  const std::chrono::milliseconds bound{setup_.settings->deadlines.progress_ms};
  if (now - beaten_ > bound)
    heard_ =
      now; // this process was stopped itself: whether the director is there is yet to be seen
  beaten_ = now;
  if (director_ && now - heard_ > silent_bounds * bound) {
    lose_director(fmt::format("has not answered for {} ms", (silent_bounds * bound).count()));
    return;
  }
  if (orphaned_since_ && !told_orphaned_ && now - *orphaned_since_ > bound)
    return end({"a rank did not leave its epoch", static_cast<std::uint8_t>(errc::timed_out)});
  node_beat what;
  what.incarnation = setup_.incarnation;
  what.sent_ns = steady_ns(now);
  for (const auto& [index, one] : ranks_)
    if (one.board) {
      what.ranks.push_back(one.board->read());
      what.ranks.back().faults = one.faults->made();
    }
  to_director(what);
  if (!ending_)
    self_->delayed_send(node_actor{self_}, beat_interval_, tick{});
}

/// A rank that waits inside of a collective reads the board, not its mail.
void node_state::end_epoch(const fence& over) {
  for (auto& [index, one] : ranks_)
    if (one.board)
      one.board->fenced.store(number(over.epoch), std::memory_order_relaxed);
  to_conductor(over);
  to_ranks(over);
  write_records(fmt::format("epoch {} ended: {}", number(over.epoch), over.reason));
}

/// The head's node passes plans and fences on to the conductor beside it, so that the conductor
/// finds the ranks of this process under the numbers of the epoch that it is told of, and in that
/// order.
template <class Message>
void node_state::to_conductor(const Message& message) {
  if (const auto conductor = setup_.here->conductor())
    self_->send(*conductor, message);
}

template <class Message>
void node_state::to_ranks(const Message& message) {
  for (const auto& [index, one] : ranks_)
    if (one.handle)
      self_->send(one.handle, message);
}

template <class Message>
void node_state::to_director(const Message& message) {
  if (director_)
    self_->send(*director_, message);
}

/// Also of ranks that are stuck: their threads are not asked.
void node_state::write_records(const std::string& reason) const {
  for (const auto& [index, one] : ranks_) {
    if (!one.last_deeds || setup_.run_folder.empty())
      continue;
    const auto id = number(one.board->rank);
    const auto file = setup_.run_folder / fmt::format("rank-{}.record", id);
    if (auto made = make_run_folder(setup_.run_folder); !made)
      log::warn("node {}", made.error().what);
    else if (auto written = one.last_deeds->write(file, reason); !written)
      log::warn("node {}", written.error().what);
    else
      log::info("rank {} did last what {} says", id, file.string());
  }
}

void node_state::inject(const fault_order& order) {
  log::warn("faults are on: {} at {}, {}", order.what, order.where, order.when);
  if (const auto ordered = read_order(*setup_.settings, order); ordered && ranks_.empty())
    setup_.faults.push_back(*ordered); // for the ranks that it is yet to host
  to_ranks(order);
}

void node_state::end(const node_stop& order) {
  if (ending_)
    return;
  ending_ = true;
  log::info("node ends: {}", order.reason);
  setup_.on_ending();
  to_ranks(order);
  for (const auto& [id, one] : ranks_)
    if (one.faults)
      one.faults->release();
  setup_.here->clear();
  ranks_.clear(); // waits for the threads, each of which ends after the message above
  director_.reset();
  setup_.gateway = gateway_actor{};
  if (order.failure == node_stop::no_failure)
    setup_.on_end({});
  else
    setup_.on_end(error{static_cast<errc>(order.failure), order.reason});
  self_->quit();
}

void node_state::lose_director(const std::string& how) {
  if (ending_)
    return;
  const auto& head = setup_.settings->nodes[setup_.settings->head_index()];
  const error why{errc::unreachable,
                  fmt::format("the head, node '{}' at {}, {}", head.name, head.advertise, how)};
  if (setup_.on_orphaned && !orphaned_since_)
    return stay_without_head(why);
  log::error("node {}", why.what);
  end({why.what, static_cast<std::uint8_t>(why.code)});
}

/// To other processes.
result<std::unique_ptr<transport::transport>> make_far_wires(const cluster_settings& settings,
                                                             std::size_t node) {
  const auto& one = settings.nodes[node];
  transport::ucx_options options;
  options.transports = one.transports;
  options.devices = one.devices;
  // Tensors go over the network that the node binds to, and no other (row E29).
  for (const auto& address : {one.bind, one.advertise})
    if (options.devices.empty())
      if (auto interface = interface_of(address); !interface.empty())
        options.devices.push_back(interface);
  options.digest = settings.parallel.frame_digest;
  options.connect_deadline = std::chrono::milliseconds{settings.deadlines.connect_ms};
  return transport::make_ucx_transport(options);
}

node_actor::behavior_type node(node_state::self_pointer self,
                               const std::shared_ptr<node_setup>& setup) {
  auto& my = self->state;
  my.start(self, std::move(*setup));
  return {
    [&my](const node_assignment& m) { my.host(m); },
    [&my](const epoch_plan& m) { my.begin_epoch(m); },
    [&my](const fence& m) { my.end_epoch(m); },
    [&my](const beat_heard& m) { my.hear(m); },
    [&my](const node_welcome&, const caf::strong_actor_ptr& door) { my.follow(door); },
    [&my](const rank_loaded& m) { my.pass_on(m); },
    [&my](const rank_rewired& m) { my.pass_on(m); },
    [&my](const rank_joined& m) { my.to_director(m); },
    [&my](const rank_fault& m) { my.to_director(m); },
    [&my](const fault_order& m) { my.inject(m); },
    [&my](const trace_order& m) { my.to_ranks(m); },
    [&my](const trace_part& m) { my.pass_on(m); },
    [&my](const tick&) { my.beat(); },
    [&my](const node_stop& m) { my.end(m); },
  };
}

} // namespace

node_actor spawn_node(caf::actor_system& system, node_setup setup) {
  return system.spawn(node, std::make_shared<node_setup>(std::move(setup)));
}

result<std::unique_ptr<transport::transport>> make_wires(const cluster_settings& settings,
                                                         std::size_t node,
                                                         transport::loopback_hub* hub,
                                                         const fault_desk& faults) {
  auto wires = hub != nullptr ? hub->make_end() : make_far_wires(settings, node);
  return wires ? result{faults.wrap(std::move(*wires))} : std::move(wires);
}

} // namespace troupe::actors
