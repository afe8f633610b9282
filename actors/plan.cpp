#include "actors/plan.hpp"

#include "actors/host_network.hpp"
#include "actors/stage_split.hpp"
#include "compute/batch.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

namespace {

constexpr double gibibyte = 1024.0 * 1024.0 * 1024.0;

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

/// The budget of each node, and how many pages fit into all of them.
result<void>
fit_pages(const cluster_settings& settings, cluster_plan& plan, std::size_t memory_here) {
  const auto per_sequence = pages_for(plan.context);
  auto pages = per_sequence * plan.max_sequences;
  std::size_t local_ranks = 0;
  for (const auto& node : settings.nodes)
    if (node.memory_bytes == 0 && memory_here > 0 && belongs_to_this_host(node.advertise))
      local_ranks += node.ranks;
  for (std::size_t n = 0; n < settings.nodes.size(); ++n) {
    const auto& node = settings.nodes[n];
    node_plan one;
    one.node = n;
    if (node.memory_bytes > 0) {
      one.budget_bytes = node.memory_bytes;
      one.budget_known = true;
    } else if (memory_here > 0 && belongs_to_this_host(node.advertise)) {
      one.budget_bytes = memory_here / local_ranks * node.ranks;
      one.budget_known = true;
    }
    std::size_t fixed = 0;
    std::size_t page = 0;
    for (const auto& rank : plan.ranks) {
      if (rank.node != n)
        continue;
      fixed += rank.weight_bytes + rank.scratch_bytes;
      page += rank.shard.kv_page_bytes;
      if (settings.state.memory_bytes > 0 && rank.shard.kv_page_bytes > 0)
        pages =
          std::min<std::size_t>(pages, settings.state.memory_bytes / rank.shard.kv_page_bytes);
    }
    if (one.budget_known && page > 0)
      pages = std::min(pages, one.budget_bytes > fixed ? (one.budget_bytes - fixed) / page : 0);
    if (pages < per_sequence) {
      const bool by_state =
        settings.state.memory_bytes > 0 && one.budget_bytes >= fixed + per_sequence * page;
      const auto key = by_state                ? std::string{"state.memory"}
                       : node.memory_bytes > 0 ? fmt::format("node[{}].memory", n)
                                               : std::string{"model.context"};
      return at_key(
        settings,
        errc::out_of_memory,
        key,
        fmt::format("node '{}' does not hold one sequence of {} tokens: weights and "
                    "scratch take {:.3f} GiB, its state {:.3f} GiB, and {:.3f} GiB are "
                    "there; a smaller model.context, more memory or more ranks would "
                    "work",
                    node.name,
                    plan.context,
                    static_cast<double>(fixed) / gibibyte,
                    static_cast<double>(per_sequence * page) / gibibyte,
                    static_cast<double>(by_state ? settings.state.memory_bytes : one.budget_bytes)
                      / gibibyte));
    }
    plan.nodes.push_back(one);
  }
  plan.pages = pages;
  for (auto& rank : plan.ranks) {
    rank.state_bytes = pages * rank.shard.kv_page_bytes;
    plan.nodes[rank.node].needed_bytes += rank.weight_bytes + rank.state_bytes + rank.scratch_bytes;
  }
  return {};
}

} // namespace

std::size_t pages_for(std::size_t tokens) {
  return (tokens + compute::kv_page_tokens - 1) / compute::kv_page_tokens;
}

result<cluster_plan>
make_plan(const cluster_settings& settings, const compute::model& model, std::size_t memory_here) {
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
  plan.context = settings.model.context_tokens > 0 ? settings.model.context_tokens : shape.context;
  plan.max_sequences = settings.state.max_sequences;
  plan.max_rows = settings.schedule.step_tokens;
  plan.boundary_row_bytes = shape.hidden * size_of(settings.parallel.wire_dtype);
  const auto places = place_ranks(settings);
  plan.stages = stages_of(settings, model, places, plan.hold);
  for (const auto& place : places) {
    rank_plan rank;
    rank.rank = place.rank;
    rank.node = number(place.node);
    rank.index_in_node = place.index_in_node;
    rank.where = *map->locate(place.rank);
    rank.record.units = plan.stages[rank.where.pipeline];
    rank.record.owns_input = rank.where.pipeline == 0;
    rank.record.owns_output = rank.where.pipeline + 1 == plan.sizes.pipeline;
    rank.record.tensor_rank = rank.where.tensor;
    rank.record.tensor_size = plan.sizes.tensor;
    auto shard = model.describe(rank.record, plan.hold);
    if (!shard)
      return with_context(fmt::format("rank {}", number(place.rank)), shard.error());
    rank.shard = std::move(*shard);
    rank.weight_bytes = rank.shard.held_bytes;
    rank.scratch_bytes = scratch_bytes(plan, rank, shape);
    if (plan.sizes.tensor > 1)
      plan.reduce_row_bytes = std::max(plan.reduce_row_bytes,
                                       2 * rank.record.units.size() * shape.hidden * sizeof(float));
    plan.ranks.push_back(std::move(rank));
  }
  if (auto fits = fit_pages(settings, plan, memory_here); !fits)
    return fits.error();
  return plan;
}

} // namespace troupe::actors
