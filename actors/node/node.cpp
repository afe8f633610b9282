#include "actors/node/node.hpp"

#include "actors/conductor/conductor.hpp"
#include "actors/control/gateway.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/control/silent_connections.hpp"
#include "actors/control/system.hpp"
#include "actors/director/director.hpp"
#include "actors/host/host_memory.hpp"
#include "actors/host/host_network.hpp"
#include "actors/node/ending.hpp"
#include "actors/node/node_start.hpp"
#include "actors/node/node_state.hpp"
#include "actors/plan/plan.hpp"
#include "actors/plan/settings_digest.hpp"
#include "actors/serve/server.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/cluster_file.hpp"
#include "config/log.hpp"
#include "transport/host_identity.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using milliseconds = std::chrono::milliseconds;

/// A termination signal that is pending for the process; the caller of run_node blocked both.
bool take_signal(milliseconds patience) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  const timespec limit{patience.count() / 1000, (patience.count() % 1000) * 1'000'000};
  return sigtimedwait(&wanted, nullptr, &limit) > 0;
}

class node_process {
public:
  explicit node_process(const node_options& options)
    : options_(options), settings_(options_.settings) {}

  ~node_process();
  node_process(const node_process&) = delete;
  node_process& operator=(const node_process&) = delete;

  result<void> run();

private:
  result<void> start_head();
  result<void> start_conductor(const director_actor& director);
  result<void> find_head();
  result<void> say_hello();
  result<void> ask_to_join(const node_hello& hello);
  result<void> join_again(orphan left);
  [[noreturn]] void leave_stuck_ranks() const;
  void close_silent_connections() const;
  result<void> wait_for_the_end();
  result<node_hello> introduce();
  reactor_options loop_options() const;
  std::size_t threads_of_a_rank() const;

  bool is_head() const { return index_ == settings_.head_index(); }

  /// Nobody else can come: frames need not leave the process.
  bool is_alone() const { return settings_.nodes.size() == 1 && settings_.nodes[0].port == 0; }

  const node_options& options_;
  const cluster_settings& settings_;
  std::size_t index_ = 0;
  std::shared_ptr<const compute::model> model_;
  std::shared_ptr<const compute::tokenizer> words_;
  std::size_t memory_here_ = 0; ///< Free at the start.
  std::filesystem::path words_folder_;
  cluster_plan plan_;
  std::uint64_t incarnation_ = 0;

  // In the order in which they must outlive each other.
  ending ending_;
  conductor_board board_;
  std::vector<fault> faults_;
  std::unique_ptr<fault_desk> conductor_faults_;
  neighbours here_;
  transport::loopback_hub hub_;
  std::unique_ptr<control_plane> control_;
  std::optional<control_file> control_file_;
  std::unique_ptr<reactor_thread> conductor_thread_;
  std::shared_ptr<conductor_place> conductor_ = std::make_shared<conductor_place>();
  std::optional<director_actor> director_; ///< On the head.
  gateway_actor gateway_;
  std::unique_ptr<serve::server> server_; ///< On the head, where [serve] wants one.
  node_actor node_;
  std::uint16_t port_ = 0;
  int parts_ = 1; ///< The node's actor, and the director on the head.
};

std::size_t node_process::threads_of_a_rank() const {
  const auto& node = settings_.nodes[index_];
  if (node.threads > 0)
    return node.threads;
  std::size_t ranks = 0;
  for (const auto& other : settings_.nodes)
    if (other.advertise == node.advertise
        || (is_loopback(other.advertise) && is_loopback(node.advertise)))
      ranks += other.ranks;
  return std::max<std::size_t>(
    1, std::thread::hardware_concurrency() / std::max<std::size_t>(1, ranks));
}

reactor_options node_process::loop_options() const {
  std::size_t threads = 1; // the conductor's
  for (const auto& other : settings_.nodes)
    if (belongs_to_this_host(other.advertise))
      threads += other.ranks * std::max<std::size_t>(1, other.threads);
  reactor_options loop;
  if (threads <= std::thread::hardware_concurrency())
    loop.spin = std::chrono::microseconds{50};
  return loop;
}

result<node_hello> node_process::introduce() {
  node_hello hello;
  hello.cluster = settings_.cluster.name;
  hello.name = options_.name;
  hello.incarnation = incarnation_;
  hello.host = transport::host_identity();
  hello.address = fmt::format("{}, process {}", settings_.nodes[index_].advertise, getpid());
  hello.settings = options_.guest ? options_.guest->settings_digest : settings_digest(settings_);
  if (options_.guest)
    hello.guest = options_.guest->section;
  hello.model = compute::to_string(model_->description_digest());
  hello.tokenizer = compute::to_string(words_->digest());
  auto samples = model_->fingerprints();
  if (!samples)
    return samples.error();
  for (const auto& sample : *samples)
    hello.samples.push_back({sample.tensor, compute::to_string(sample.digest)});
  return hello;
}

result<void> node_process::start_conductor(const director_actor& director) {
  auto prepared = prepare_conductor(settings_, plan_, *model_, words_);
  if (!prepared)
    return prepared.error();
  auto& born = *prepared;
  born.board = &board_;
  born.here = &here_;
  born.director = director;
  born.settings = &settings_;
  conductor_faults_ = std::make_unique<fault_desk>(
    conductor_spot, fault_book(options_.run_folder, options_.name), incarnation_);
  conductor_faults_->add(faults_);
  born.faults = conductor_faults_.get();
  reactor_thread::options thread;
  thread.name = "conductor";
  thread.loop = loop_options();
  auto started = reactor_thread::start(
    control_->system(),
    thread,
    [this] {
      return make_wires(settings_, index_, is_alone() ? &hub_ : nullptr, *conductor_faults_);
    },
    [&](reactor& home, transport::transport& wires) {
      born.home = &home;
      born.wires = &wires;
      for (const auto byte : wires.address().bytes)
        conductor_->address.push_back(std::to_integer<std::uint8_t>(byte));
      conductor_->handle = spawn_conductor(control_->system(), std::move(born));
    });
  if (!started)
    return with_context("conductor", started.error());
  conductor_thread_ = std::move(*started);
  here_.add(conductor_->handle);
  return {};
}

result<void> node_process::start_head() {
  auto claimed = control_file::claim(options_.run_folder);
  if (!claimed)
    return claimed.error();
  control_file_.emplace(std::move(*claimed));
  director_setup born;
  born.settings = &settings_;
  born.plan = plan_;
  born.replan = [this](const cluster_settings& settings, const std::vector<std::size_t>& nodes) {
    return make_plan(settings, *model_, memory_here_, nodes);
  };
  auto hello = introduce();
  if (!hello)
    return hello.error();
  born.reference = std::move(*hello);
  born.conductor = conductor_;
  born.board = &board_;
  born.on_end = [this](result<void> how) { ending_.tell(std::move(how)); };
  ++parts_;
  director_ = spawn_director(control_->system(), std::move(born));
  if (auto started = start_conductor(*director_); !started)
    return started;
  gateway_ = spawn_gateway(control_->system(), *director_, conductor_->handle, words_);
  auto port = control_->publish(gateway_, index_);
  if (!port)
    return port.error();
  port_ = *port;
  log::info("head listens on {}", name_endpoint(settings_.nodes[index_].bind, port_));
  control_point told{port_, settings_.cluster.name, options_.name};
  if (settings_.serve.enabled) {
    auto picture = options_.draw_plan ? options_.draw_plan() : std::string{};
    auto server = serve::server::start(
      control_->system(),
      {&settings_, gateway_, words_, words_folder_, plan_.context, std::move(picture)});
    if (!server)
      return server.error();
    server_ = std::move(*server);
    told.url = server_->url();
  }
  return control_file_->write(std::move(told));
}

/// Waits for the head, whatever the order of start, and says why it could not be reached.
result<void> node_process::find_head() {
  const auto& head = settings_.nodes[settings_.head_index()];
  const auto until = clock::now() + milliseconds{settings_.deadlines.join_ms};
  std::string reason;
  for (;;) {
    auto port = static_cast<std::uint16_t>(head.port);
    if (port == 0) {
      if (auto written = read_control(options_.run_folder))
        port = written->port;
      else
        reason = written.error().what;
    }
    if (port != 0) {
      auto found =
        control_->connect(head.advertise, port, milliseconds{settings_.deadlines.connect_ms});
      if (found) {
        gateway_ = *found;
        return {};
      }
      if (found.error().code == errc::unauthorised || found.error().code == errc::mismatch)
        return found.error();
      reason = found.error().what;
    }
    if (clock::now() > until)
      return error{errc::timed_out,
                   fmt::format("node '{}' did not reach the head, node '{}' at {}, within {} ms "
                               "(deadlines.join_ms): {}",
                               options_.name,
                               head.name,
                               head.advertise,
                               settings_.deadlines.join_ms,
                               reason)};
    if (take_signal(milliseconds{100}))
      return error{errc::cancelled, "stopped by a signal while waiting for the head"};
  }
}

/// A node that comes at a bad moment asks again: while ranks load, and for as long as the head may
/// take to see that a former process of this name is gone.
result<void> node_process::ask_to_join(const node_hello& hello) {
  const milliseconds patience{settings_.deadlines.join_ms};
  const auto begin = clock::now();
  caf::scoped_actor self{control_->system()};
  for (;;) {
    result<void> outcome;
    self->request(gateway_, patience, hello, node_)
      .receive([](const node_welcome&) {},
               [&](const caf::error& why) { outcome = from_caf(control_->system(), why); });
    const auto waited = clock::now() - begin;
    const milliseconds namesake{settings_.deadlines.progress_ms + 500};
    const bool again = !outcome
                       && ((outcome.error().code == errc::overloaded && waited < patience)
                           || (outcome.error().code == errc::not_now && waited < namesake));
    if (!again)
      return outcome;
    if (take_signal(milliseconds{200}))
      return error{errc::cancelled, "stopped by a signal while waiting to join"};
  }
}

result<void> node_process::say_hello() {
  node_setup born;
  born.settings = &settings_;
  born.index = index_;
  born.model = model_;
  born.grammars = std::make_shared<compute::constraint_maker>(words_);
  born.hold = {plan_.hold, plan_.state};
  born.max_rows = plan_.max_rows;
  born.threads = threads_of_a_rank();
  born.loop = loop_options();
  born.incarnation = incarnation_;
  born.faults = faults_;
  born.run_folder = options_.run_folder;
  born.here = &here_;
  born.hub = is_alone() ? &hub_ : nullptr;
  born.gateway = gateway_;
  if (!is_head() && !settings_.recovery.journal.empty())
    born.on_orphaned = [this](std::vector<held_shard> held, epoch_id epoch) {
      ending_.lose_head({std::move(held), epoch});
    };
  born.on_ending = [this] { ending_.begin_ranks(); };
  born.on_end = [this](result<void> how) {
    ending_.end_ranks();
    ending_.tell(std::move(how));
  };
  node_ = spawn_node(control_->system(), std::move(born));
  auto hello = introduce();
  if (!hello)
    return hello.error();
  auto outcome = ask_to_join(*hello);
  if (!outcome)
    caf::anon_send(node_, node_stop{outcome.error().what});
  return outcome;
}

/// The head has died and comes back: with its journal it goes on, with these shards.
result<void> node_process::join_again(orphan left) {
  if (auto found = find_head(); !found)
    return found;
  auto hello = introduce();
  if (!hello)
    return hello.error();
  hello->held = std::move(left.held);
  hello->last_epoch = left.last_epoch;
  auto joined = ask_to_join(*hello);
  if (joined)
    caf::anon_send(node_, node_welcome{}, caf::actor_cast<caf::strong_actor_ptr>(gateway_));
  return joined;
}

/// A thread that does not come back can be ended with its process only.
void node_process::leave_stuck_ranks() const {
  log::error("node '{}' ends without a rank that is stuck", options_.name);
  std::fprintf(stderr,
               "troupe: error: node '%s' ended without a rank that was stuck\n",
               options_.name.c_str());
  std::_Exit(exit_code(errc::timed_out));
}

/// Strangers at the door, and whoever lost his network there.
void node_process::close_silent_connections() const {
  if (port_ == 0 || !control_->secured())
    return;
  const milliseconds patience{settings_.deadlines.connect_ms};
  if (const auto closed = break_silent_connections(port_, patience); closed > 0)
    log::info("node '{}' closed {} connections that did not show who they are within {} ms",
              options_.name,
              closed,
              patience.count());
}

result<void> node_process::wait_for_the_end() {
  const auto stuck = 2 * milliseconds{settings_.deadlines.progress_ms};
  bool asked = false;
  clock::time_point until{};
  auto last_look = clock::now();
  while (!ending_.wait(parts_, milliseconds{0})) {
    if (clock::now() - last_look > milliseconds{1000}) {
      last_look = clock::now();
      close_silent_connections();
    }
    if (take_signal(milliseconds{100}) && !asked) {
      asked = true;
      until = clock::now() + 3 * milliseconds{settings_.deadlines.drain_ms};
      log::info("node '{}' was told to stop", options_.name);
      if (is_head())
        caf::anon_send(gateway_, cluster_stop{"the head was told to stop"});
      else
        caf::anon_send(node_, node_stop{"it was told to stop"});
    }
    if (auto left = ending_.take_orphan())
      if (auto joined = join_again(*std::move(left)); !joined)
        return joined;
    if (const auto begun = ending_.begun(); begun && clock::now() - *begun > stuck)
      leave_stuck_ranks();
    if (asked && clock::now() > until)
      return error{errc::timed_out,
                   fmt::format("node '{}' did not end in good order within {} ms",
                               options_.name,
                               3 * settings_.deadlines.drain_ms)};
  }
  return ending_.outcome();
}

/// The framework cannot end while an actor of ours lives: whatever a failure on the way has left is
/// told to end, and waited for.
node_process::~node_process() {
  if (!control_)
    return;
  if (server_)
    server_->stop(milliseconds{1000}); // Answers are complete by now; they may be on their way.
  if (port_ != 0)
    control_->unpublish(gateway_, port_);
  caf::scoped_actor self{control_->system()};
  std::vector<caf::strong_actor_ptr> left;
  const auto watch = [&](const caf::strong_actor_ptr& which) {
    left.push_back(which);
    self->monitor(which);
  };
  const auto end = [&](const caf::strong_actor_ptr& which) {
    if (!which)
      return;
    watch(which);
    self->send_exit(which, caf::exit_reason::user_shutdown);
  };
  if (is_head())
    end(caf::actor_cast<caf::strong_actor_ptr>(gateway_));
  if (director_)
    end(caf::actor_cast<caf::strong_actor_ptr>(*director_));
  if (conductor_thread_) { // its wires and its reactor hold on to it until it lets go itself
    watch(caf::actor_cast<caf::strong_actor_ptr>(conductor_->handle));
    self->send(conductor_->handle, node_stop{"the process ends"});
  }
  end(caf::actor_cast<caf::strong_actor_ptr>(node_));
  for (std::size_t ended = 0; ended < left.size(); ++ended)
    self->receive([](const caf::down_msg&) {},
                  caf::after(milliseconds{settings_.deadlines.drain_ms}) >>
                    [&] { log::warn("node '{}' leaves an actor behind", options_.name); });
  if (conductor_faults_)
    conductor_faults_->release();
  conductor_thread_.reset();
  here_.clear();
  conductor_.reset();
}

result<void> node_process::run() {
  while (index_ < settings_.nodes.size() && settings_.nodes[index_].name != options_.name)
    ++index_;
  if (index_ == settings_.nodes.size())
    return error{errc::invalid_config,
                 fmt::format("there is no node '{}' in {}", options_.name, settings_.file)};
  std::random_device random;
  incarnation_ = (std::uint64_t{random()} << 32) | random();
  auto faults = faults_of(settings_);
  if (!faults)
    return faults.error();
  faults_ = std::move(*faults);
  if (!faults_.empty())
    log::warn("faults are on: {} of {}", faults_.size(), settings_.file);
  if (auto chosen = choose_instruction_set(settings_, index_); !chosen)
    return chosen;
  if (auto known = check_devices(settings_, index_); !known)
    return known;
  auto files = open_model_files(settings_, index_);
  if (!files)
    return files.error();
  model_ = std::move(files->model);
  words_ = std::move(files->words);
  words_folder_ = std::move(files->words_folder);
  memory_here_ = available_memory_bytes();
  auto plan = make_plan(settings_, *model_, memory_here_);
  if (!plan)
    return plan.error();
  plan_ = std::move(*plan);
  auto control = control_plane::start(settings_);
  if (!control)
    return control.error();
  control_ = std::move(*control);
  if (auto found = is_head() ? start_head() : find_head(); !found)
    return found;
  if (auto welcome = say_hello(); !welcome)
    return welcome;
  return wait_for_the_end();
}

} // namespace

result<void> run_node(const node_options& options) {
  node_process process{options};
  return process.run();
}

} // namespace troupe::actors
