#include "actors/cli/local_cluster.hpp"

#include "actors/cli/progress.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/messages/clients.hpp"
#include "config/log.hpp"

#include <fmt/format.h>

#include <thread>

namespace troupe::cli {

using actors::cluster_client;
using std::chrono::milliseconds;

namespace {

using clock = std::chrono::steady_clock;

constexpr milliseconds look_period{50};

// How often a running cluster is asked whom it has lost.
constexpr milliseconds ask_period{500};

// For the nodes of a cluster that did not come to serve.
constexpr milliseconds give_up_time{2000};

// A node that dies takes its peers' connections along: its own words come a moment later.
constexpr milliseconds last_words_time{1000};

} // namespace

result<std::unique_ptr<local_cluster>> local_cluster::start(const cluster_settings& settings,
                                                            const local_options& options) {
  if (auto made = actors::make_run_folder(options.run_folder); !made)
    return made.error();
  std::unique_ptr<local_cluster> made(new local_cluster(settings, options));
  auto nodes = actors::launcher::start(
    settings,
    actors::nodes_of_this_host(settings),
    {options.cluster.file, options.cluster.overrides, options.run_folder, options.show_logs});
  if (!nodes)
    return nodes.error();
  made->nodes_ = std::move(*nodes);
  if (auto serving = made->wait_until_serving(); !serving) {
    // Nothing was served yet: what does not end at once is not worth waiting for.
    if (auto stopped = made->end(give_up_time); !stopped)
      log::debug("{}", stopped.error().what);
    return serving.error();
  }
  return made;
}

local_cluster::~local_cluster() {
  if (auto stopped = stop(); !stopped)
    warn(stopped.error().what);
}

result<void> local_cluster::stop() {
  return end(milliseconds(3 * settings_.deadlines.drain_ms) + std::chrono::seconds(5));
}

result<void> local_cluster::end(milliseconds deadline) {
  client_.reset();
  result<void> ended;
  if (nodes_)
    ended = nodes_->stop(deadline);
  nodes_.reset();
  if (!options_.run_folder.empty())
    actors::remove_run_folder(options_.run_folder);
  options_.run_folder.clear();
  return ended;
}

// Whether the cluster serves; an error when it never will.
result<bool> local_cluster::look(progress_line& progress) {
  if (auto failure = nodes_->find_failure())
    return *failure;
  if (!client_) {
    progress.show("starting " + counted(nodes_->running(), "node"));
    auto found = cluster_client::connect(settings_, options_.run_folder, milliseconds(1000));
    if (found)
      client_ = std::move(*found);
    else if (found.error().code == errc::unauthorised || found.error().code == errc::mismatch
             || found.error().code == errc::invalid_config)
      return found.error();
    return false;
  }
  const auto status = client_->status(milliseconds(settings_.deadlines.status_ms));
  if (status) {
    const bool serving = status->phase == "serving";
    if (!serving)
      progress.show(progress_text(*status));
    return serving;
  }
  if (status.error().code != errc::unreachable)
    return false; // Busy; the deadline is the caller's.
  for (const auto give_up = clock::now() + last_words_time; clock::now() < give_up;) {
    if (auto failure = nodes_->find_failure())
      return *failure;
    std::this_thread::sleep_for(look_period);
  }
  return status.error();
}

result<std::unique_ptr<local_cluster>> local_cluster::start_for_command(
  const cluster_settings& settings, cluster_options own, bool show_logs, bool quiet) {
  if (actors::nodes_of_this_host(settings).size() < settings.nodes.size())
    return error{errc::unreachable,
                 fmt::format("{} does not run, and not all of its nodes belong on this host; start "
                             "it with `troupe up` on each host",
                             settings.file)};
  const auto folder = actors::make_unique_run_folder(settings);
  if (!folder)
    return folder.error();
  own.overrides.emplace_back("serve.enabled=false"); // nobody needs a port
  return start(settings, {std::move(own), *folder, show_logs, quiet});
}

result<std::vector<std::string>> local_cluster::tend() {
  const auto& recovery = settings_.recovery;
  auto told = nodes_->tend({recovery.restarts, milliseconds(recovery.restart_pause_ms)});
  if (!told || recovery.restarts == 0 || clock::now() - asked_ < ask_period)
    return told;
  asked_ = clock::now();
  if (!client_) { // The head was started again.
    if (auto found = cluster_client::connect(settings_, options_.run_folder, milliseconds(1000)))
      client_ = std::move(*found);
    return told;
  }
  const auto status = client_->status(milliseconds(settings_.deadlines.status_ms));
  if (!status) {
    if (status.error().code == errc::unreachable)
      client_.reset();
    return told;
  }
  if (status->phase == "stopping" || status->phase == "failed" || status->phase == "stopped")
    return told; // Who has ended by now was told to.
  for (const auto& node : status->nodes) {
    const auto process = nodes_->process_of(node.name);
    if (!process)
      continue;
    if (node.state == "joined") {
      joined_[node.name] = *process;
    } else if (node.state == "lost" && joined_[node.name] == *process) {
      // Not its successor, which stays "lost" until it has said hello.
      nodes_->kill(node.name);
      told->push_back(fmt::format("node {} was given up: {}", node.name, node.reason));
    }
  }
  return told;
}

result<void> local_cluster::wait_until_serving() {
  const auto& deadlines = settings_.deadlines;
  const auto give_up =
    clock::now() + milliseconds(deadlines.join_ms + deadlines.load_ms + deadlines.status_ms);
  progress_line progress(options_.quiet);
  while (clock::now() < give_up) {
    const auto serving = look(progress);
    if (!serving)
      return serving.error();
    if (*serving) {
      for (const auto& node : settings_.nodes)
        if (const auto process = nodes_->process_of(node.name))
          joined_[node.name] = *process;
      return {};
    }
    if (nodes_->running() == 0)
      return error{errc::unreachable, "all nodes of this host ended before the cluster served"};
    if (wait_for_stop_signal(look_period) != 0)
      return error{errc::cancelled, "stopped while starting"};
  }
  return error{errc::timed_out,
               fmt::format("the cluster did not serve within deadlines.join_ms + load_ms = {} s",
                           (deadlines.join_ms + deadlines.load_ms) / 1000)};
}

result<std::unique_ptr<cluster_client>> find_running(const cluster_settings& settings) {
  auto found = cluster_client::connect(
    settings, actors::run_folder_for(settings), milliseconds(settings.deadlines.connect_ms));
  if (!found && (found.error().code == errc::unreachable || found.error().code == errc::not_now))
    return std::unique_ptr<cluster_client>();
  return found;
}

result<running_cluster> need_running(const cluster_options& options, std::string_view and_so) {
  auto settings = read_cluster(options);
  if (!settings)
    return settings.error();
  auto client = find_running(*settings);
  if (!client)
    return client.error();
  if (*client == nullptr)
    return error{errc::unreachable, fmt::format("{} does not run{}", settings->file, and_so)};
  return running_cluster{*std::move(settings), *std::move(client)};
}

} // namespace troupe::cli
