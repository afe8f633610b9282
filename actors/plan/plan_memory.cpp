// fit_state (actors/plan/plan.hpp): how many pages of attention state fit into every budget.
#include "actors/host/host_network.hpp"
#include "actors/plan/plan.hpp"
#include "compute/batch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace troupe::actors {

namespace {

/// The product, or the largest number where it does not fit: a hostile context must not wrap
/// around into something that seems to fit.
std::size_t product(std::size_t left, std::size_t right) {
  std::size_t whole = 0;
  return __builtin_mul_overflow(left, right, &whole) ? std::numeric_limits<std::size_t>::max()
                                                     : whole;
}

std::size_t sum(std::size_t left, std::size_t right) {
  std::size_t whole = 0;
  return __builtin_add_overflow(left, right, &whole) ? std::numeric_limits<std::size_t>::max()
                                                     : whole;
}

std::string gibibytes(std::size_t bytes) {
  return fmt::format("{:.3f} GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

/// What the ranks of one node take together.
struct load {
  std::size_t fixed = 0; ///< Weights and scratch.
  std::size_t page = 0;  ///< One page of state.
};

load load_of(const cluster_plan& plan, std::size_t node) {
  load all;
  for (const auto& rank : plan.ranks) {
    if (rank.node != node)
      continue;
    all.fixed += rank.weight_bytes + rank.scratch_bytes;
    all.page += rank.page_bytes;
  }
  return all;
}

/// Nodes of this host without a budget of their own share what it has, by their ranks.
std::vector<node_plan> budgets(const cluster_settings& settings, std::size_t memory_here) {
  std::vector<node_plan> nodes;
  std::size_t sharing_ranks = 0;
  for (const auto& node : settings.nodes) {
    node_plan one;
    one.node = nodes.size();
    one.is_here = belongs_to_this_host(node.advertise);
    if (one.is_here && node.memory_bytes == 0)
      sharing_ranks += node.ranks;
    nodes.push_back(one);
  }
  for (auto& one : nodes) {
    const auto& node = settings.nodes[one.node];
    one.budget_known = node.memory_bytes > 0 || (one.is_here && memory_here > 0);
    if (one.budget_known)
      one.budget_bytes =
        node.memory_bytes > 0 ? node.memory_bytes : memory_here / sharing_ranks * node.ranks;
  }
  return nodes;
}

error too_small(const cluster_settings& settings,
                const cluster_plan& plan,
                const node_plan& node,
                const load& all) {
  const auto& which = settings.nodes[node.node];
  const auto state = product(compute::pages_for(plan.context), all.page);
  return {
    errc::out_of_memory,
    settings.point_at(
      which.memory_bytes > 0 ? fmt::format("node[{}].memory", node.node) : "model.context",
      fmt::format("node '{}' needs {} but {} {}: weights and scratch take {}, the state of one "
                  "sequence of {} tokens {}; a smaller model.context, more memory or more ranks "
                  "would work",
                  which.name,
                  gibibytes(sum(all.fixed, state)),
                  gibibytes(node.budget_bytes),
                  which.memory_bytes > 0 ? "are its budget" : "are free",
                  gibibytes(all.fixed),
                  plan.context,
                  gibibytes(state)))};
}

/// As many pages as `state.memory` leaves to each rank.
result<void> cap_by_state(const cluster_settings& settings, cluster_plan& plan) {
  const auto limit = settings.state.memory_bytes;
  const auto least = compute::pages_for(plan.context);
  for (const auto& rank : plan.ranks) {
    const auto page = rank.page_bytes;
    if (limit == 0 || page == 0)
      continue;
    plan.pages = std::min<std::size_t>(plan.pages, limit / page);
    if (plan.pages < least)
      return error{
        errc::out_of_memory,
        settings.point_at("state.memory",
                          fmt::format("one sequence of {} tokens takes {} of state on rank {}, but "
                                      "state.memory is {}; a smaller model.context, or more of it, "
                                      "would work",
                                      plan.context,
                                      gibibytes(product(least, page)),
                                      number(rank.rank),
                                      gibibytes(limit)))};
  }
  return {};
}

result<void> cap_by_nodes(const cluster_settings& settings, cluster_plan& plan) {
  for (const auto& node : plan.nodes) {
    const auto all = load_of(plan, node.node);
    if (!node.budget_known || all.page == 0)
      continue;
    const auto room = node.budget_bytes > all.fixed ? node.budget_bytes - all.fixed : 0;
    plan.pages = std::min(plan.pages, room / all.page);
    if (plan.pages < compute::pages_for(plan.context))
      return too_small(settings, plan, node, all);
  }
  return {};
}

} // namespace

result<void>
fit_state(const cluster_settings& settings, cluster_plan& plan, std::size_t memory_here) {
  const auto least = compute::pages_for(plan.context);
  plan.pages = product(least, plan.max_sequences);
  plan.nodes = budgets(settings, memory_here);
  auto fits = cap_by_state(settings, plan);
  if (fits)
    fits = cap_by_nodes(settings, plan);
  if (!fits)
    plan.pages = least;
  for (auto& rank : plan.ranks)
    rank.state_bytes = product(plan.pages, rank.page_bytes);
  for (auto& node : plan.nodes) {
    const auto all = load_of(plan, node.node);
    node.least_bytes = sum(all.fixed, product(least, all.page));
    node.needed_bytes = sum(all.fixed, product(plan.pages, all.page));
  }
  return fits;
}

} // namespace troupe::actors
