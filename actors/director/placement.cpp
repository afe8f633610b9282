#include "actors/director/placement.hpp"

#include <algorithm>

namespace troupe::actors {

placement::placement(const cluster_settings& settings) : settings_(settings) {
  for (std::size_t node = 0; node < settings.nodes.size(); ++node)
    add(node);
}

void placement::add(std::size_t node) {
  if (!settings_.nodes[node].spare)
    seats_.push_back({node, std::nullopt});
}

void placement::remove(std::size_t node) {
  std::erase_if(seats_, [node](const seat& one) { return one.owner == node; });
}

bool placement::is_seated(std::size_t node) const {
  return std::any_of(
    seats_.begin(), seats_.end(), [node](const seat& one) { return one.holder == node; });
}

void placement::refill(const std::vector<bool>& available) {
  for (auto& one : seats_)
    if (one.holder && !available[*one.holder])
      one.holder.reset();
  for (auto& one : seats_)
    if (!one.holder && available[one.owner] && !is_seated(one.owner))
      one.holder = one.owner;
  for (auto& one : seats_)
    for (std::size_t node = 0; node < settings_.nodes.size() && !one.holder; ++node)
      if (settings_.nodes[node].spare && available[node] && !is_seated(node)
          && settings_.nodes[node].ranks == settings_.nodes[one.owner].ranks)
        one.holder = node;
}

bool placement::full() const {
  return std::all_of(
    seats_.begin(), seats_.end(), [](const seat& one) { return one.holder.has_value(); });
}

std::vector<std::size_t> placement::holders() const {
  std::vector<std::size_t> nodes;
  std::size_t ranks = 0;
  for (const auto& one : seats_)
    if (one.holder) {
      nodes.push_back(*one.holder);
      ranks += settings_.nodes[*one.holder].ranks;
    }
  while (!nodes.empty() && ranks % settings_.parallel.tensor != 0) {
    ranks -= settings_.nodes[nodes.back()].ranks;
    nodes.pop_back();
  }
  return nodes;
}

std::size_t placement::stages() const {
  std::size_t ranks = 0;
  for (const auto node : holders())
    ranks += settings_.nodes[node].ranks;
  return ranks / settings_.parallel.tensor;
}

} // namespace troupe::actors
