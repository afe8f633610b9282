// plan_json (actors/cli/plan_report.hpp), apart from the texts: JSON is a heavy header.
#include "actors/cli/plan_report.hpp"
#include "compute/batch.hpp"
#include "transport/frame.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

using nlohmann::ordered_json;

namespace {

ordered_json half_open(const range& units) {
  return {units.begin, units.end};
}

ordered_json model_json(const plan_report& report) {
  const auto& shape = report.shape;
  return {
    {"folder", report.model_folder},
    {"digest", report.model_digest},
    {"family", shape.family},
    {"layers", shape.layers},
    {"hidden", shape.hidden},
    {"heads", shape.heads},
    {"kv_heads", shape.kv_heads},
    {"head_dim", shape.head_dim},
    {"ffn", shape.ffn},
    {"vocabulary", shape.vocabulary},
    {"context", shape.context},
    {"tied_head", shape.tied_head},
    {"stored_dtype", to_string(shape.stored)},
    {"held_dtype", to_string(report.plan.hold)},
  };
}

ordered_json state_json(const plan_report& report) {
  const auto& plan = report.plan;
  return {
    {"context", plan.context},
    {"max_sequences", plan.max_sequences},
    {"pages", plan.pages},
    {"page_tokens", compute::kv_page_tokens},
    {"pages_per_sequence", compute::pages_for(plan.context)},
    {"step_rows", plan.max_rows},
  };
}

ordered_json rank_json(const plan_report& report, const actors::rank_plan& rank) {
  return {
    {"rank", number(rank.rank)},
    {"node", report.nodes[rank.node].name},
    {"stage", rank.where.pipeline},
    {"tensor", rank.where.tensor},
    {"layers", half_open(rank.record.units)},
    {"owns_input", rank.record.owns_input},
    {"owns_output", rank.record.owns_output},
    {"heads", half_open(rank.shard.heads)},
    {"kv_heads", half_open(rank.shard.kv_heads)},
    {"ffn", half_open(rank.shard.ffn)},
    {"vocabulary", half_open(rank.shard.vocabulary)},
    {"tensors", rank.shard.tensors.size()},
    {"stored_bytes", rank.shard.stored_bytes},
    {"weight_bytes", rank.weight_bytes},
    {"state_page_bytes", rank.page_bytes},
    {"state_bytes", rank.state_bytes},
    {"scratch_bytes", rank.scratch_bytes},
    {"reduce_row_bytes", rank.reduce_row_bytes},
    {"gather_row_bytes", rank.gather_row_bytes},
  };
}

ordered_json boundaries_json(const plan_report& report) {
  auto list = ordered_json::array();
  for (std::size_t stage = 0; stage + 1 < report.plan.sizes.pipeline; ++stage)
    list.push_back({{"from_stage", stage},
                    {"to_stage", stage + 1},
                    {"links", report.plan.sizes.tensor},
                    {"dtype", to_string(report.wire)},
                    {"row_bytes", report.plan.boundary_row_bytes},
                    {"header_bytes", transport::wire_header_bytes}});
  return list;
}

ordered_json node_json(const plan_report& report, const actors::node_plan& node) {
  ordered_json made{
    {"name", report.nodes[node.node].name},
    {"address", report.nodes[node.node].address},
    {"ranks", report.nodes[node.node].ranks},
    {"needed_bytes", node.needed_bytes},
    {"least_bytes", node.least_bytes},
    {"budget_bytes", nullptr},
    {"found_bytes", nullptr},
  };
  if (node.budget_known)
    made["budget_bytes"] = node.budget_bytes;
  if (node.is_here && report.found_bytes > 0)
    made["found_bytes"] = report.found_bytes;
  return made;
}

ordered_json rates_json(const actors::rates& rates) {
  return {
    {"streams", rates.streams},
    {"prompt_tokens", rates.prompt},
    {"answer_tokens", rates.answer},
    {"prompt_tokens_per_s", rates.prompt_tokens_per_s},
    {"answer_tokens_per_s", rates.answer_tokens_per_s},
    {"first_token_s", rates.first_token_s},
    {"bubble", rates.bubble},
    {"bytes_per_token", rates.bytes_per_token},
  };
}

/// As if every host were like this one; null where it was not measured.
ordered_json forecast_json(const plan_report& report) {
  if (!report.speed)
    return nullptr;
  return ordered_json::array({rates_json(report.speed->one), rates_json(report.speed->many)});
}

} // namespace

std::string plan_json(const plan_report& report) {
  const auto& plan = report.plan;
  auto ranks = ordered_json::array();
  for (const auto& rank : plan.ranks)
    ranks.push_back(rank_json(report, rank));
  auto nodes = ordered_json::array();
  for (const auto& node : plan.nodes)
    nodes.push_back(node_json(report, node));
  auto stages = ordered_json::array();
  for (const auto& stage : plan.stages)
    stages.push_back(half_open(stage));
  const ordered_json whole{
    {"cluster", report.cluster},
    {"file", report.file},
    {"fits", report.fits()},
    {"refusal", report.fits() ? ordered_json(nullptr) : ordered_json(report.refusal)},
    {"missing", report.missing.empty() ? ordered_json(nullptr) : ordered_json(report.missing)},
    {"model", model_json(report)},
    {"parallel", {{"pipeline", plan.sizes.pipeline}, {"tensor", plan.sizes.tensor}}},
    {"state", state_json(report)},
    {"stages", std::move(stages)},
    {"ranks", std::move(ranks)},
    {"boundaries", boundaries_json(report)},
    {"nodes", std::move(nodes)},
    {"forecast", forecast_json(report)},
    {"weight_bytes_per_s",
     report.speed ? ordered_json(report.speed->weights_per_s) : ordered_json(nullptr)},
  };
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
