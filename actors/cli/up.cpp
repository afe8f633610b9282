#include "actors/cli/up.hpp"

#include "actors/cli/local_cluster.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/messages/clients.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace troupe::cli {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds look_period{200};

error no_local_node(const cluster_settings& settings) {
  std::string addresses;
  for (const auto& node : settings.nodes)
    addresses +=
      fmt::format("{}{} at {}", addresses.empty() ? "" : ", ", node.name, node.advertise);
  return {errc::invalid_config,
          fmt::format("no node of {} belongs on this host: {}; `troupe doctor` shows this host's "
                      "addresses, and `troupe node --name NAME` starts one in any case",
                      settings.file,
                      addresses)};
}

// Serves until a signal, a failure, or the end of all nodes.
result<void> serve(local_cluster& cluster) {
  while (cluster.alive()) {
    if (wait_for_stop_signal(look_period) != 0)
      break;
    const auto told = cluster.tend();
    if (!told)
      return told.error();
    for (const auto& line : *told)
      warn(line);
  }
  return {};
}

void show(local_cluster& cluster,
          const cluster_settings& settings,
          const std::filesystem::path& folder) {
  const auto ranks = describe_ranks(cluster.client(), milliseconds(settings.deadlines.status_ms));
  if (!ranks)
    return warn(ranks.error().what);
  fmt::print("{}", *ranks);
  if (!settings.faults.empty())
    fmt::print(
      "faults are on: {} of {}\n", counted(settings.faults.size(), "fault"), settings.file);
  if (const auto head = actors::read_control(folder); head && !head->url.empty())
    fmt::print("HTTP at {}\n", head->url);
  fmt::print("serving; Ctrl-C stops it\n");
  std::fflush(stdout);
}

} // namespace

int run_up_command(const up_options& options) {
  const auto settings = read_cluster(options.cluster);
  if (!settings)
    return fail(settings.error());
  if (actors::nodes_of_this_host(*settings).empty())
    return fail(no_local_node(*settings));
  const auto folder = actors::run_folder_for(*settings);
  if (const auto head = actors::read_control(folder))
    return fail({errc::not_now,
                 fmt::format("{} runs already on this host: node {}, process {}; `troupe stop` "
                             "ends it",
                             settings->file,
                             head->node,
                             head->pid)});
  auto cluster =
    local_cluster::start(*settings, {options.cluster, folder, options.show_logs, options.quiet});
  if (!cluster)
    return fail(cluster.error());
  show(**cluster, *settings, folder);
  const auto served = serve(**cluster);
  if (!options.quiet)
    fmt::print(stderr, "stopping\n");
  const auto stopped = (*cluster)->stop();
  if (!served)
    return fail(served.error());
  return stopped ? 0 : fail(stopped.error());
}

int run_drain_command(const cluster_options& options, const std::string& node) {
  const auto cluster = need_running(options);
  if (!cluster)
    return fail(cluster.error());
  const auto& deadlines = cluster->settings.deadlines;
  const auto patience = milliseconds(deadlines.status_ms);
  if (auto begun = cluster->client->drain(node, patience); !begun)
    return fail(begun.error());
  // The others may have to load what it held.
  const auto give_up = std::chrono::steady_clock::now() + milliseconds(deadlines.load_ms);
  while (std::chrono::steady_clock::now() < give_up) {
    const auto status = cluster->client->status(patience);
    if (!status && status.error().code == errc::unreachable)
      return fail(status.error());
    for (std::size_t i = 0; status && i < status->nodes.size(); ++i)
      if (status->nodes[i].name == node && status->nodes[i].state == "drained") {
        fmt::print("node {} has ended; {} ranks serve\n", node, status->ranks.size());
        return 0;
      }
    if (wait_for_stop_signal(look_period) != 0)
      return fail({errc::cancelled, "stopped while waiting for the node to end"});
  }
  return fail(
    {errc::timed_out,
     fmt::format("node {} did not end within {} ms (deadlines.load_ms)", node, deadlines.load_ms)});
}

int run_serve_command(up_options options) {
  options.cluster.overrides.emplace_back("serve.enabled=true");
  return run_up_command(options);
}

int run_stop_command(const cluster_options& options) {
  const auto cluster = need_running(options);
  if (!cluster)
    return fail(cluster.error());
  const auto& deadlines = cluster->settings.deadlines;
  const auto patience = milliseconds(deadlines.drain_ms) + std::chrono::seconds(5);
  if (auto stopped = cluster->client->stop("asked by troupe stop", patience); !stopped)
    return fail(stopped.error());
  return 0;
}

} // namespace troupe::cli
