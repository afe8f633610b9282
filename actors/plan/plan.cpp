#include "actors/plan/plan.hpp"

#include "actors/rank/boundary_log.hpp"

#include "actors/plan/stage_split.hpp"
#include "compute/candidates.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

namespace {

error at_key(const cluster_settings& settings,
             errc code,
             std::string_view key,
             const std::string& text) {
  return {code, settings.point_at(key, text)};
}

result<void> check_sizes(const cluster_settings& settings, const compute::model& model) {
  const auto& shape = model.shape();
  const auto pipeline = settings.parallel.pipeline;
  const auto tensor = settings.parallel.tensor;
  if (pipeline > shape.layers)
    return at_key(settings,
                  errc::invalid_config,
                  "parallel.pipeline",
                  fmt::format("{} stages for {} layers leave stage {} without a layer; 1 to {} "
                              "stages would work",
                              pipeline,
                              shape.layers,
                              shape.layers,
                              shape.layers));
  if (tensor > model.max_tensor_size())
    return at_key(settings,
                  errc::invalid_config,
                  "parallel.tensor",
                  fmt::format("tensor size {} is more than this model can be cut into: it has {} "
                              "heads, 1 to {} would work",
                              tensor,
                              shape.heads,
                              model.max_tensor_size()));
  const auto& layers = settings.parallel.layers;
  if (!layers.empty() && layers.back().end != shape.layers)
    return at_key(settings,
                  errc::invalid_config,
                  "parallel.layers",
                  fmt::format("the ranges end at layer {}, but the model has {} layers",
                              layers.back().end,
                              shape.layers));
  for (std::size_t n = 0; n < settings.nodes.size() && !layers.empty(); ++n)
    if (const auto key = fmt::format("node[{}].weight", n); settings.origins.contains(key))
      return at_key(settings,
                    errc::invalid_config,
                    key,
                    fmt::format("node '{}' has weight {}, which means nothing where "
                                "parallel.layers says who gets which layers; remove one of them",
                                settings.nodes[n].name,
                                settings.nodes[n].weight));
  if (settings.model.context_tokens > shape.context)
    return at_key(settings,
                  errc::invalid_config,
                  "model.context",
                  fmt::format("a context of {} tokens is more than the {} that the model was made "
                              "for",
                              settings.model.context_tokens,
                              shape.context));
  return {};
}

std::vector<range> stages_of(const cluster_settings& settings,
                             const compute::model& model,
                             const std::vector<rank_placement>& places,
                             dtype hold) {
  if (!settings.parallel.layers.empty())
    return settings.parallel.layers;
  std::vector<double> speeds(settings.parallel.pipeline, 0.0);
  for (const auto& place : places) {
    auto& speed = speeds[number(place.rank) / settings.parallel.tensor];
    const auto weight = settings.nodes[number(place.node)].weight;
    speed = speed == 0.0 ? weight : std::min(speed, weight); // a group waits for its slowest
  }
  return balance_stages(model.shape().layers, model.costs(hold), speeds);
}

/// Activations of a step that live at once, an upper bound.
std::size_t
scratch_bytes(const cluster_plan& plan, const rank_plan& rank, const compute::model_shape& shape) {
  const auto heads = rank.shard.heads.size() + 2 * rank.shard.kv_heads.size();
  const auto row = 4 * shape.hidden + heads * shape.head_dim + shape.heads * shape.head_dim
                   + 2 * rank.shard.ffn.size();
  auto floats = plan.max_rows * row;
  if (rank.record.owns_output)
    floats += plan.max_sequences * (shape.vocabulary + rank.shard.vocabulary.size());
  return floats * sizeof(float);
}

result<rank_plan> plan_rank(const cluster_plan& plan,
                            const compute::model& model,
                            const rank_placement& place,
                            const coordinates& where) {
  const auto& shape = model.shape();
  rank_plan rank;
  rank.rank = place.rank;
  rank.node = number(place.node);
  rank.index_in_node = place.index_in_node;
  rank.where = where;
  rank.record.units = plan.stages[where.pipeline];
  rank.record.owns_input = where.pipeline == 0;
  rank.record.owns_output = where.pipeline + 1 == plan.sizes.pipeline;
  rank.record.tensor_rank = where.tensor;
  rank.record.tensor_size = plan.sizes.tensor;
  auto shard = model.estimate(rank.record, {plan.hold, plan.state});
  if (!shard)
    return shard.error();
  rank.shard = *std::move(shard);
  rank.weight_bytes = rank.shard.held_bytes;
  rank.scratch_bytes = scratch_bytes(plan, rank, shape);
  rank.page_bytes = rank.shard.kv_page_bytes;
  if (plan.keeps_boundaries && !rank.record.owns_output)
    rank.page_bytes += boundary_log::page_bytes(plan.boundary_row_bytes);
  if (plan.sizes.tensor > 1) {
    const auto sums = 2 * rank.record.units.size() + (rank.record.owns_input ? 1 : 0);
    rank.reduce_row_bytes = sums * shape.hidden * sizeof(float);
    if (rank.record.owns_output) {
      rank.gather_row_bytes = plan.sizes.tensor * compute::candidate_bytes;
      rank.gather_whole_row_bytes = shape.vocabulary * sizeof(float);
    }
  }
  return rank;
}

} // namespace

result<cluster_plan> lay_out(const cluster_settings& settings, const compute::model& model) {
  if (auto fits = check_sizes(settings, model); !fits)
    return fits.error();
  auto map = topology::make({.data = settings.parallel.data,
                             .pipeline = settings.parallel.pipeline,
                             .tensor = settings.parallel.tensor});
  if (!map)
    return map.error();
  const auto& shape = model.shape();
  cluster_plan plan;
  plan.sizes = map->sizes();
  plan.hold = settings.model.held_dtype.value_or(shape.stored);
  plan.state = settings.state.dtype;
  plan.context = settings.model.context_tokens > 0 ? settings.model.context_tokens : shape.context;
  plan.max_sequences = settings.state.max_sequences;
  plan.max_rows = settings.schedule.step_tokens;
  plan.keeps_boundaries = settings.recovery.keep_boundaries;
  plan.boundary_row_bytes = shape.hidden * size_of(settings.parallel.wire_dtype);
  const auto places = place_ranks(settings);
  plan.stages = stages_of(settings, model, places, plan.hold);
  for (const auto& place : places) {
    auto rank = plan_rank(plan, model, place, *map->locate(place.rank));
    if (!rank)
      return with_context(fmt::format("rank {}", number(place.rank)), rank.error());
    plan.ranks.push_back(*std::move(rank));
  }
  return plan;
}

result<cluster_plan>
make_plan(const cluster_settings& settings, const compute::model& model, std::size_t memory_here) {
  auto plan = lay_out(settings, model);
  if (!plan)
    return plan;
  if (auto fits = fit_state(settings, *plan, memory_here); !fits)
    return fits.error();
  return plan;
}

result<cluster_plan> make_plan(const cluster_settings& settings,
                               const compute::model& model,
                               std::size_t memory_here,
                               const std::vector<std::size_t>& nodes) {
  auto part = settings;
  part.nodes.clear();
  std::size_t ranks = 0;
  for (const auto node : nodes) {
    part.nodes.push_back(settings.nodes[node]);
    part.nodes.back().spare = false;
    ranks += part.nodes.back().ranks;
  }
  const auto stages = ranks / part.parallel.tensor;
  if (stages != part.parallel.pipeline)
    part.parallel.layers.clear();
  part.parallel.pipeline = stages;
  auto plan = make_plan(part, model, memory_here);
  if (!plan)
    return plan;
  for (auto& rank : plan->ranks)
    rank.node = nodes[rank.node];
  for (auto& node : plan->nodes)
    node.node = nodes[node.node];
  return plan;
}

} // namespace troupe::actors
