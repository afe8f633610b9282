#include "actors/cli/status_text.hpp"

#include "actors/cli/command.hpp"
#include "actors/messages/clients.hpp"
#include "actors/rank/rank_phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

namespace troupe::cli {

using actors::cluster_status;
using actors::rank_status;

namespace {

constexpr std::chrono::milliseconds gauge_patience{2500};
constexpr std::chrono::milliseconds gauge_period{20};

// What carries the frames, without whom to: "to rank 2 tcp/eth0, tensor group over shared memory"
// is "tcp/eth0" and "tensor group over shared memory".
void add_carriers(std::string_view links, std::set<std::string>& into) {
  while (!links.empty()) {
    const auto end = std::min(links.find(", "), links.size());
    auto one = links.substr(0, end);
    links.remove_prefix(std::min(end + 2, links.size()));
    for (const std::string_view addressee : {"to conductor ", "to rank "}) {
      if (one.starts_with(addressee))
        one.remove_prefix(addressee.size());
    }
    one.remove_prefix(std::min(one.find_first_not_of("0123456789 "), one.size()));
    into.insert(std::string(one));
  }
}

std::string layers_text(const rank_status& rank) {
  if (rank.last_unit <= rank.first_unit)
    return "-";
  return rank.last_unit - rank.first_unit == 1
           ? fmt::format("{}", rank.first_unit)
           : fmt::format("{}-{}", rank.first_unit, rank.last_unit - 1);
}

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

std::size_t count_of(const cluster_status& status, std::uint32_t rank_status::*axis) {
  std::size_t most = 0;
  for (const auto& rank : status.ranks)
    most = std::max<std::size_t>(most, rank.*axis + 1);
  return most;
}

std::string nodes_text(const cluster_status& status) {
  std::string text = fmt::format("{:<12} {:<28} {:<10} {}\n", "node", "address", "state", "reason");
  for (const auto& node : status.nodes)
    text +=
      fmt::format("{:<12} {:<28} {:<10} {}\n", node.name, node.address, node.state, node.reason);
  return text;
}

std::string work_text(const cluster_status& status) {
  std::string text =
    fmt::format("{:>4} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>10} {:>10} {:>7}\n",
                "rank",
                "weights",
                "state",
                "steps",
                "rows",
                "compute",
                "reduce",
                "waited",
                "sent",
                "silent");
  for (const auto& rank : status.ranks) {
    const auto& gauge = rank.gauge;
    text += fmt::format("{:>4} {:>10} {:>10} {:>10} {:>9} {:>7.2f} s {:>7.2f} s {:>8.2f} s {:>10} "
                        "{:>4} ms\n",
                        number(gauge.rank),
                        bytes_text(gauge.bytes_held),
                        bytes_text(gauge.state_bytes),
                        gauge.steps,
                        gauge.rows,
                        seconds(gauge.compute_ns),
                        seconds(gauge.collective_ns),
                        seconds(gauge.wait_ns),
                        bytes_text(gauge.payload_bytes_sent),
                        rank.silent_ms);
  }
  return text;
}

} // namespace

std::string_view phase_name(std::uint8_t phase) {
  const auto& names = actors::rank_phases.phase_names;
  return phase < names.size() ? names[phase] : "unknown";
}

std::string progress_text(const cluster_status& status) {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::string each;
  for (const auto& rank : status.ranks) {
    const auto& gauge = rank.gauge;
    done += gauge.load_done_bytes;
    total += gauge.load_total_bytes;
    if (gauge.load_total_bytes > 0)
      each += fmt::format("{}rank {} {} %",
                          each.empty() ? "" : ", ",
                          number(gauge.rank),
                          gauge.load_done_bytes * 100 / gauge.load_total_bytes);
  }
  std::string text = status.phase;
  if (total > 0 && done < total)
    text += fmt::format(": {} of {} ({})", bytes_text(done), bytes_text(total), each);
  std::string missing;
  for (const auto& node : status.nodes) {
    if (node.state == "missing")
      missing += (missing.empty() ? "" : ", ") + node.name;
  }
  if (!missing.empty())
    text += ", waiting for node " + missing;
  if (!status.reason.empty())
    text += ": " + status.reason;
  return text;
}

std::string ranks_text(const cluster_status& status) {
  std::string text;
  for (const auto& rank : status.ranks)
    text += fmt::format("rank {}  node {}  stage {} tensor {}  layers {}  {}  {}{}\n",
                        number(rank.gauge.rank),
                        rank.node,
                        rank.stage,
                        rank.tensor,
                        layers_text(rank),
                        bytes_text(rank.gauge.bytes_held),
                        phase_name(rank.gauge.phase),
                        rank.links.empty() ? "" : "  " + rank.links);
  return text;
}

result<std::string> describe_ranks(actors::cluster_client& client,
                                   std::chrono::milliseconds deadline) {
  // Gauges come with the nodes' beats, a moment after the cluster serves.
  const auto loaded = [](const rank_status& rank) { return rank.gauge.bytes_held > 0; };
  const auto give_up = std::chrono::steady_clock::now() + gauge_patience;
  auto status = client.status(deadline);
  while (status && !std::all_of(status->ranks.begin(), status->ranks.end(), loaded)
         && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(gauge_period);
    status = client.status(deadline);
  }
  if (!status)
    return status.error();
  return ranks_text(*status);
}

result<std::string> describe_state(actors::cluster_client& client,
                                   std::chrono::milliseconds deadline) {
  const auto status = client.status(deadline);
  if (!status)
    return status.error();
  return fmt::format("{}, {}, {}",
                     progress_text(*status),
                     counted(status->nodes.size(), "node"),
                     counted(status->ranks.size(), "rank"));
}

std::string status_text(const cluster_status& status) {
  const auto& conductor = status.conductor;
  std::string text = fmt::format("cluster {}: {}{}, epoch {}, up {:.1f} s\n",
                                 status.cluster,
                                 status.phase,
                                 status.reason.empty() ? "" : " (" + status.reason + ")",
                                 number(status.epoch),
                                 static_cast<double>(status.uptime_ms) * 1e-3);
  text += fmt::format("requests: {} queued, {} running, {} finished, {} failed, {} cancelled; {} "
                      "prompt and {} answer tokens in {} steps; {} of {} pages in use\n\n",
                      conductor.queued,
                      conductor.running,
                      conductor.finished,
                      conductor.failed,
                      conductor.cancelled,
                      conductor.prompt_tokens,
                      conductor.answer_tokens,
                      conductor.steps,
                      conductor.pages_used,
                      conductor.pages_total);
  text += nodes_text(status) + "\n" + ranks_text(status);
  if (!status.ranks.empty())
    text += "\n" + work_text(status);
  return text;
}

result<traffic> read_traffic(actors::cluster_client& client, std::chrono::milliseconds deadline) {
  const auto status = client.status(deadline);
  if (!status)
    return status.error();
  traffic read;
  read.ranks = status->ranks.size();
  read.stages = count_of(*status, &rank_status::stage);
  read.tensor = count_of(*status, &rank_status::tensor);
  std::set<std::string> carriers;
  for (const auto& rank : status->ranks) {
    read.rows =
      &rank == &status->ranks.front() ? rank.gauge.rows : std::min(read.rows, rank.gauge.rows);
    read.boundary_frames += rank.gauge.boundary_frames;
    read.boundary_bytes += rank.gauge.boundary_bytes;
    add_carriers(rank.links, carriers);
  }
  for (const auto& carrier : carriers)
    read.transports += (read.transports.empty() ? "" : ", ") + carrier;
  return read;
}

double bytes_per_boundary(const traffic& before, const traffic& after) {
  const auto rows = static_cast<double>(after.rows - before.rows);
  if (after.stages < 2 || rows <= 0)
    return 0;
  const auto links = static_cast<double>((after.stages - 1) * after.tensor);
  return static_cast<double>(after.boundary_bytes - before.boundary_bytes) / rows / links;
}

} // namespace troupe::cli
