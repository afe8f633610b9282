#include "actors/cli/command.hpp"
#include "actors/cli/plan_report.hpp"
#include "actors/cli/simulation_report.hpp"
#include "actors/cli/text_table.hpp"
#include "compute/batch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

namespace {

constexpr auto right = text_table::side::right;

std::string bytes_of(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(std::max(0.0, bytes) + 0.5));
}

std::string time_text(double seconds) {
  if (seconds < 1e-3)
    return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1)
    return fmt::format("{:.1f} ms", seconds * 1e3);
  return seconds < 600 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

std::string rate_text(double rate) {
  return fmt::format("{:.{}f}", rate, rate < 100 ? 1 : 0);
}

/// Ascending first-token times of all requests.
std::vector<double> first_tokens(const actors::simulated_run& run) {
  std::vector<double> times;
  for (const auto& one : run.requests)
    times.push_back(one.first_token_s);
  std::sort(times.begin(), times.end());
  return times;
}

std::string head_lines(const scenario& wanted, const actors::scenario_forecast& found) {
  const auto& plan = found.cluster.plan;
  const auto& shape = found.cluster.shape;
  return fmt::format("scenario {} ({})\n"
                     "model    {}, held {}\n"
                     "hosts    {} of {} in use, {}, {} x {} = {}\n"
                     "load     {}, prompts of {}, answers of {}, {} in all\n",
                     wanted.name,
                     wanted.file,
                     shape_words(shape),
                     to_string(plan.hold),
                     found.hosts_used,
                     wanted.host_count(),
                     found.tried.empty() ? "sizes as given"
                                         : "sizes chosen for " + wanted.parallel.best,
                     counted(plan.sizes.pipeline, "stage"),
                     counted(plan.sizes.tensor, "tensor rank"),
                     counted(plan.ranks.size(), "rank"),
                     counted(wanted.load.streams, "stream"),
                     wanted.load.prompt,
                     wanted.load.answer,
                     counted(found.run.requests.size(), "request"));
}

std::string rate_lines(const actors::scenario_forecast& found) {
  const auto& run = found.run;
  const auto times = first_tokens(run);
  return fmt::format("answers  {} tokens/s over all, {} once the first tokens are there\n"
                     "prompts  {} tokens/s; first token after {} (median), {} (worst)\n"
                     "steps    {} in {}; stages idle {:.1f} % of the time\n"
                     "bytes    {} a token on all wires\n",
                     rate_text(run.answer_rate()),
                     rate_text(run.decode_rate()),
                     rate_text(found.figures.prompt_tokens_per_s),
                     time_text(times[times.size() / 2]),
                     time_text(times.back()),
                     run.steps,
                     time_text(run.seconds),
                     100 * run.bubble(),
                     bytes_of(found.figures.bytes_per_token));
}

/// The heaviest rank of a stage.
const actors::rank_plan& heaviest(const actors::forecast_cluster& cluster, std::size_t stage) {
  const auto ranks = cluster.ranks_of(stage);
  return *std::max_element(ranks.begin(), ranks.end(), [](const auto& l, const auto& r) {
    return l.total_bytes() < r.total_bytes();
  });
}

std::string stage_table(const actors::scenario_forecast& found) {
  const auto& cluster = found.cluster;
  const auto tokens = static_cast<double>(found.run.prompt_tokens + found.run.answer_tokens);
  text_table table{{{"stage", right},
                    {"layers"},
                    {"hosts"},
                    {"group over"},
                    {"weights", right},
                    {"with state", right},
                    {"has", right},
                    {"works", right},
                    {"sums", right},
                    {"idle", right},
                    {"on", right},
                    {"in the group", right}}};
  for (std::size_t stage = 0; stage < cluster.plan.sizes.pipeline; ++stage) {
    const auto& use = found.run.stages[stage];
    const auto& rank = heaviest(cluster, stage);
    const auto ranks = cluster.ranks_of(stage);
    const auto part = [&](double s) {
      return fmt::format("{:.1f} %", 100 * s / found.run.seconds);
    };
    table.add({fmt::format("{}", stage),
               range_text(cluster.plan.stages[stage]),
               range_text({cluster.nodes[ranks.front().node].host,
                           cluster.nodes[ranks.back().node].host + 1}),
               ranks.size() == 1 ? "-" : std::string(actors::to_string(cluster.spread(stage))),
               bytes_text(rank.weight_bytes),
               bytes_text(rank.total_bytes()),
               bytes_text(cluster.plan.nodes[rank.node].budget_bytes),
               part(use.work_s),
               part(use.sum_s),
               part(std::max(0.0, found.run.seconds - use.work_s - use.sum_s)),
               bytes_of(use.boundary_bytes / tokens),
               bytes_of(use.sum_bytes / tokens)});
  }
  return "of each rank of a stage, the heaviest; bytes sent a token on to the next stage, and by "
         "each\nmember in the group:\n"
         + table.text();
}

std::string state_line(const actors::scenario_forecast& found) {
  const auto& plan = found.cluster.plan;
  const auto per_sequence = compute::pages_for(plan.context);
  return fmt::format("state    {} of {} tokens on every rank: room for {} of {} sequences of {}\n",
                     counted(plan.pages, "page"),
                     compute::kv_page_tokens,
                     plan.pages / per_sequence,
                     plan.max_sequences,
                     plan.context);
}

std::string failure_lines(const scenario& wanted, const actors::scenario_forecast& found) {
  const auto& costs = found.recoveries;
  if (costs.per_week <= 0)
    return "failures none are described\n";
  return fmt::format("failures {:.2f} recoveries a week: {} after a process, {} after a host ({}); "
                     "of it {} to load, {} to replay\n"
                     "lost     {} a week, {:.4f} % of the time\n",
                     costs.per_week,
                     time_text(costs.process_s),
                     time_text(costs.host_s),
                     wanted.failures.spares > 0 ? "a spare takes its place" : "until it is back",
                     time_text(costs.load_s),
                     time_text(costs.replay_s),
                     time_text(costs.lost_s_a_week),
                     100 * costs.lost_part);
}

/// The best ones first, five at most.
std::string tried_table(const actors::scenario_forecast& found) {
  auto tried = found.tried;
  const auto best = std::min<std::size_t>(5, tried.size());
  std::stable_sort(
    tried.begin(), tried.end(), [](const auto& l, const auto& r) { return l.figure > r.figure; });
  text_table table{{{"stages", right}, {"tensor", right}, {"tokens/s", right}}};
  for (std::size_t i = 0; i < best; ++i)
    table.add({fmt::format("{}", tried[i].pipeline),
               fmt::format("{}", tried[i].tensor),
               tried[i].figure > 0 ? rate_text(tried[i].figure) : "does not fit"});
  return fmt::format(
    "\nthe best of {} sizes, by a short run of each:\n{}", found.tried.size(), table.text());
}

} // namespace

std::string simulation_text(const scenario& wanted, const actors::scenario_forecast& found) {
  return head_lines(wanted, found) + state_line(found) + "\n" + rate_lines(found)
         + failure_lines(wanted, found) + "\n" + stage_table(found)
         + (found.tried.empty() ? "" : tried_table(found));
}

} // namespace troupe::cli
