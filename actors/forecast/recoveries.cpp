#include "actors/forecast/recoveries.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace troupe::actors {

namespace {

constexpr double week_s = 7 * 86'400;

/// The most that one host's ranks hold.
double heaviest_host(const forecast_cluster& cluster) {
  std::vector<double> bytes(cluster.hosts.size(), 0.0);
  for (const auto& rank : cluster.plan.ranks)
    bytes[cluster.nodes[rank.node].host] += static_cast<double>(rank.weight_bytes);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

std::size_t hosts_in_use(const forecast_cluster& cluster) {
  std::set<std::size_t> used;
  for (const auto& rank : cluster.plan.ranks)
    used.insert(cluster.nodes[rank.node].host);
  return used.size();
}

/// One stage computes so many positions again, in steps as full as a replay's. Rows come from the
/// stage before it, which kept them.
double replay_seconds(const forecast_cluster& cluster, double positions) {
  step_load step;
  const auto rows = std::max<std::size_t>(1, cluster.plan.max_rows);
  add_rows(step, 0, rows);
  double slowest = 0;
  for (std::size_t stage = 0; stage < cluster.plan.sizes.pipeline; ++stage) {
    double work = 0;
    for (const auto& rank : cluster.ranks_of(stage)) {
      const auto& node = cluster.nodes[rank.node];
      work = std::max(work,
                      seconds(rank_work(cluster, rank, step),
                              cluster.hosts[node.host].cores,
                              node.threads,
                              node.threads));
    }
    slowest = std::max(slowest, work + group_cost(cluster, stage, step).s);
  }
  const auto stages = cluster.plan.keeps_boundaries ? 1 : cluster.plan.sizes.pipeline;
  return positions / static_cast<double>(rows) * slowest * static_cast<double>(stages);
}

} // namespace

recovery_forecast forecast_recoveries(const forecast_cluster& cluster,
                                      const scenario_failures& failures,
                                      double positions) {
  recovery_forecast made;
  const auto hosts = static_cast<double>(hosts_in_use(cluster));
  made.load_s = heaviest_host(cluster) / (failures.load_gb_per_s * 1e9);
  made.replay_s = replay_seconds(cluster, positions);
  made.process_s = failures.notice_s + failures.join_s + made.load_s + made.replay_s;
  made.host_s = made.process_s + (failures.spares > 0 ? 0 : failures.host_back_s);
  const auto of_hosts = hosts * failures.hosts_per_week;
  const auto of_processes = hosts * failures.processes_per_week;
  made.per_week = of_hosts + of_processes;
  made.lost_s_a_week = of_hosts * made.host_s + of_processes * made.process_s;
  // Up for a while, then down: the time between two failures is time that the cluster works.
  made.lost_part = made.lost_s_a_week / (week_s + made.lost_s_a_week);
  return made;
}

} // namespace troupe::actors
