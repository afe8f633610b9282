// simulation_json (actors/cli/simulation_report.hpp), apart from the text: JSON is a heavy header.
#include "actors/cli/simulation_report.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

using nlohmann::ordered_json;

namespace {

ordered_json stages_json(const actors::scenario_forecast& found) {
  auto list = ordered_json::array();
  const auto& cluster = found.cluster;
  for (std::size_t stage = 0; stage < cluster.plan.sizes.pipeline; ++stage) {
    const auto& layers = cluster.plan.stages[stage];
    const auto& use = found.run.stages[stage];
    list.push_back({{"stage", stage},
                    {"layers", {layers.begin, layers.end}},
                    {"group_over", actors::to_string(cluster.spread(stage))},
                    {"work_s", use.work_s},
                    {"sum_s", use.sum_s},
                    {"boundary_bytes", use.boundary_bytes},
                    {"boundary_messages", use.messages},
                    {"sum_bytes_of_a_member", use.sum_bytes}});
  }
  return list;
}

ordered_json ranks_json(const actors::scenario_forecast& found) {
  auto list = ordered_json::array();
  const auto& cluster = found.cluster;
  for (const auto& rank : cluster.plan.ranks)
    list.push_back({{"rank", number(rank.rank)},
                    {"host", cluster.nodes[rank.node].host},
                    {"rack", cluster.nodes[rank.node].rack},
                    {"threads", cluster.nodes[rank.node].threads},
                    {"weight_bytes", rank.weight_bytes},
                    {"needed_bytes", rank.total_bytes()},
                    {"has_bytes", cluster.plan.nodes[rank.node].budget_bytes}});
  return list;
}

ordered_json requests_json(const actors::simulated_run& run) {
  auto list = ordered_json::array();
  for (const auto& one : run.requests)
    list.push_back({{"prompt_tokens", one.prompt},
                    {"answer_tokens", one.answer},
                    {"submitted_s", one.submitted_s},
                    {"first_token_s", one.first_token_s},
                    {"total_s", one.total_s}});
  return list;
}

ordered_json recoveries_json(const actors::recovery_forecast& costs) {
  return {{"per_week", costs.per_week},
          {"process_s", costs.process_s},
          {"host_s", costs.host_s},
          {"load_s", costs.load_s},
          {"replay_s", costs.replay_s},
          {"lost_s_a_week", costs.lost_s_a_week},
          {"lost_part", costs.lost_part}};
}

ordered_json tried_json(const actors::scenario_forecast& found) {
  auto list = ordered_json::array();
  for (const auto& one : found.tried)
    list.push_back({{"pipeline", one.pipeline},
                    {"tensor", one.tensor},
                    {"tokens_per_s", one.figure > 0 ? ordered_json(one.figure) : nullptr}});
  return list;
}

} // namespace

std::string simulation_json(const scenario& wanted, const actors::scenario_forecast& found) {
  const auto& run = found.run;
  const auto& plan = found.cluster.plan;
  const ordered_json whole{
    {"scenario", wanted.name},
    {"file", wanted.file},
    {"hosts", wanted.host_count()},
    {"hosts_used", found.hosts_used},
    {"parallel", {{"pipeline", plan.sizes.pipeline}, {"tensor", plan.sizes.tensor}}},
    {"held_dtype", to_string(plan.hold)},
    {"pages", plan.pages},
    {"streams", wanted.load.streams},
    {"prompt_tokens", run.prompt_tokens},
    {"answer_tokens", run.answer_tokens},
    {"seconds", run.seconds},
    {"steps", run.steps},
    {"answer_tokens_per_s", run.answer_rate()},
    {"decode_tokens_per_s", run.decode_rate()},
    {"prompt_tokens_per_s", found.figures.prompt_tokens_per_s},
    {"mean_first_token_s", run.mean_first_token_s()},
    {"bubble", run.bubble()},
    {"bytes_per_token", found.figures.bytes_per_token},
    {"stages", stages_json(found)},
    {"ranks", ranks_json(found)},
    {"recoveries", recoveries_json(found.recoveries)},
    {"requests", requests_json(run)},
    {"tried", tried_json(found)},
  };
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
