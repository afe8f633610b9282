#include "actors/cli/inject.hpp"

#include "actors/cli/local_cluster.hpp"

#include <fmt/format.h>

namespace troupe::cli {

int run_inject_command(const inject_options& options) {
  const auto cluster =
    need_running(options.cluster, "; a [[fault]] in it would wait for the start");
  if (!cluster)
    return fail(cluster.error());
  const std::chrono::milliseconds patience{cluster->settings.deadlines.status_ms};
  const auto receipt = cluster->client->inject(options.wanted, patience);
  if (!receipt)
    return fail(receipt.error());
  fmt::print("{}\n", *receipt);
  return 0;
}

} // namespace troupe::cli
