#include "actors/cli/status.hpp"

#include "actors/cli/local_cluster.hpp"
#include "actors/cli/status_text.hpp"
#include "actors/messages/clients.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace troupe::cli {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds watch_period{1000};

} // namespace

int run_status_command(const status_options& options) {
  const auto cluster = need_running(options.cluster, "; `troupe up` starts it");
  if (!cluster)
    return fail(cluster.error());
  const bool redraw = options.watch && !options.json && ::isatty(STDOUT_FILENO) == 1;
  while (true) {
    const auto status =
      cluster->client->status(milliseconds(cluster->settings.deadlines.status_ms));
    if (!status)
      return fail(status.error());
    fmt::print("{}{}{}",
               redraw ? "\033[H\033[2J" : "",
               options.json ? status_json(*status) : status_text(*status),
               options.json || options.watch ? "\n" : "");
    if (std::fflush(stdout) != 0 || !options.watch || wait_for_stop_signal(watch_period) != 0)
      return 0;
  }
}

} // namespace troupe::cli
