#include "actors/cli/inject.hpp"

#include "actors/cli/local_cluster.hpp"

#include <fmt/format.h>

namespace troupe::cli {

int run_inject_command(const inject_options& options) {
  const auto settings = read_cluster(options.cluster);
  if (!settings)
    return fail(settings.error());
  auto client = find_running(*settings);
  if (!client)
    return fail(client.error());
  if (*client == nullptr)
    return fail(
      {errc::unreachable,
       fmt::format("{} does not run; a [[fault]] in it would wait for the start", settings->file)});
  const auto receipt =
    (*client)->inject(options.wanted, std::chrono::milliseconds(settings->deadlines.status_ms));
  if (!receipt)
    return fail(receipt.error());
  fmt::print("{}\n", *receipt);
  return 0;
}

} // namespace troupe::cli
