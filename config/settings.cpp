#include "config/settings.hpp"

#include "config/address.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe {

std::size_t cluster_settings::head_index() const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [this](const node_settings& node) {
    return node.name == cluster.head;
  });
  check(found != nodes.end(), "the reader accepts only a head that is a node");
  return static_cast<std::size_t>(found - nodes.begin());
}

const node_settings* cluster_settings::find_node(std::string_view name) const {
  for (const auto& node : nodes)
    if (node.name == name)
      return &node;
  return nullptr;
}

bool cluster_settings::on_one_host() const {
  return std::all_of(nodes.begin(), nodes.end(), [](const node_settings& node) {
    return is_loopback(node.bind) && is_loopback(node.advertise);
  });
}

const std::filesystem::path& cluster_settings::model_path_of(const node_settings& node) const {
  return node.model_path.empty() ? model.path : node.model_path;
}

std::string cluster_settings::point_at(std::string_view full_name,
                                       std::string_view message,
                                       std::string_view comment) const {
  if (const auto found = origins.find(full_name); found != origins.end())
    return point(found->second, message, comment);
  return comment.empty() ? fmt::format("{}: {}", file, message)
                         : fmt::format("{}: {} ({})", file, message, comment);
}

std::vector<rank_placement> place_ranks(const cluster_settings& settings) {
  std::vector<rank_placement> placements;
  std::uint32_t rank = 0;
  for (std::size_t node = 0; node < settings.nodes.size(); ++node)
    for (std::size_t i = 0; i < settings.nodes[node].ranks && !settings.nodes[node].spare; ++i)
      placements.push_back({rank_id{rank++}, static_cast<node_id>(node), i});
  check(placements.size() == settings.world(), "the ranks of all nodes are the ranks of the axes");
  return placements;
}

} // namespace troupe
