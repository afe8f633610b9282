#include "actors/cli/trace.hpp"

#include "actors/cli/local_cluster.hpp"
#include "actors/cli/trace_report.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/messages/clients.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

namespace troupe::cli {

using std::chrono::milliseconds;

namespace {

/// Ranks hear of the order at different steps: so many more are noted, and cut off.
constexpr std::uint32_t spare_steps = 16;

/// Requests of our own, which go on until it is destroyed.
class own_work {
public:
  own_work(std::unique_ptr<actors::cluster_client> client,
           std::uint32_t requests,
           std::uint32_t tokens)
    : client_(std::move(client)), thread_([this, requests, tokens] {
        actors::text_request one;
        one.prompt = "In the beginning";
        one.max_tokens = tokens;
        one.ignore_end = true;
        const std::vector<actors::text_request> all(requests, one);
        failed_ = !client_->generate(all, {}, done_);
      }) {}

  ~own_work() {
    done_ = true;
    thread_.join();
  }

private:
  std::atomic<bool> done_{false};
  std::atomic<bool> failed_{false};
  std::unique_ptr<actors::cluster_client> client_;
  std::thread thread_; // Last: it uses the members above.
};

result<void> write(const std::filesystem::path& file, const std::string& text) {
  if (file == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      return error{errc::io_error, "nobody reads standard output any more"};
    return {};
  }
  return write_file(file, text);
}

void print_summary(const trace_options& options, const trace_summary& told) {
  fmt::print(stderr,
             "{}: {} in {:.1f} ms; the nodes' clocks agree to {:.3f} ms\n",
             options.out.string(),
             counted(told.steps, "step"),
             told.seconds * 1e3,
             told.uncertain_ms);
  for (const auto& rank : told.ranks)
    fmt::print(stderr,
               "rank {}  stage {}  {:5.1f} % in steps, of which {:.1f} in collectives; "
               "{:.1f} % bubbles\n",
               number(rank.rank),
               rank.stage,
               rank.busy * 100,
               rank.collective * 100,
               (1 - rank.busy) * 100);
}

/// The work that shows the cluster: enough that every stage may be busy all the time.
result<std::uint32_t> requests_wanted(actors::cluster_client& client,
                                      const trace_options& options,
                                      milliseconds deadline) {
  if (options.requests)
    return *options.requests;
  const auto status = client.status(deadline);
  if (!status)
    return status.error();
  std::uint32_t stages = 0;
  for (const auto& rank : status->ranks)
    stages = std::max(stages, rank.stage + 1);
  return status->conductor.running + status->conductor.queued > 0 ? 0 : 2 * stages;
}

int trace(actors::cluster_client& client,
          const trace_options& options,
          const cluster_settings& settings,
          const std::filesystem::path& folder) {
  const milliseconds deadline(settings.deadlines.status_ms);
  const auto requests = requests_wanted(client, options, deadline);
  if (!requests)
    return fail(requests.error());
  std::optional<own_work> work;
  if (*requests > 0) {
    auto own = actors::cluster_client::connect(settings, folder, deadline);
    if (!own)
      return fail(own.error());
    const auto tokens = options.steps + 4 * spare_steps; // the context bounds it, too
    work.emplace(std::move(*own), *requests, tokens);
  }
  auto report =
    client.trace(options.steps + spare_steps, milliseconds(options.wait_s * 1000), deadline);
  work.reset();
  if (!report)
    return fail(report.error());
  cut_to_common_steps(*report, options.steps);
  const auto told = summarise(*report);
  if (told.steps == 0)
    return fail(
      {errc::timed_out,
       fmt::format("no step ran within {} s; --requests 4 asks for some work", options.wait_s)});
  if (auto written = write(options.out, trace_json(*report)); !written)
    return fail(written.error());
  if (told.steps < options.steps)
    warn(fmt::format("{} ran within {} s, {} were asked for; --requests 4 asks for some work",
                     counted(told.steps, "step"),
                     options.wait_s,
                     options.steps));
  if (!options.quiet)
    print_summary(options, told);
  return 0;
}

/// On a cluster of our own, for the time of this command.
int trace_embedded(const trace_options& options, const cluster_settings& settings) {
  auto cluster = local_cluster::start_for_command(settings, options.cluster, false, options.quiet);
  if (!cluster)
    return fail(cluster.error());
  const int code = trace((*cluster)->client(), options, settings, (*cluster)->run_folder());
  const auto stopped = (*cluster)->stop();
  return code != 0 || stopped ? code : fail(stopped.error());
}

} // namespace

int run_trace_command(const trace_options& options) {
  const auto settings = read_cluster(options.cluster);
  if (!settings)
    return fail(settings.error());
  auto client = find_running(*settings);
  if (!client)
    return fail(client.error());
  if (*client == nullptr)
    return trace_embedded(options, *settings);
  return trace(**client, options, *settings, actors::run_folder_for(*settings));
}

} // namespace troupe::cli
