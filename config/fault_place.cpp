#include "config/fault.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {

namespace {

constexpr std::string_view examples =
  "\"rank 1\", \"node b\", \"conductor\", \"any\", \"rank 0 -> rank 1\" or \"any link\" would work";

/// The node whose process a party lives in.
std::size_t node_of(const cluster_settings& settings, std::uint32_t party) {
  if (party == conductor_spot)
    return settings.head_index();
  return number(place_ranks(settings).at(party).node);
}

std::string name_party(std::uint32_t party) {
  return party == conductor_spot ? "conductor" : fmt::format("rank {}", party);
}

/// Ranks and conductor exchange frames only along the pipeline and within a tensor group.
bool exchange_frames(const cluster_settings& settings, std::uint32_t a, std::uint32_t b) {
  if (a == conductor_spot || b == conductor_spot)
    return a != b;
  const auto tensor = static_cast<std::uint32_t>(settings.parallel.tensor);
  if (a / tensor == b / tensor)
    return a != b;
  return a % tensor == b % tensor && std::max(a, b) - std::min(a, b) == tensor;
}

class place_reader {
public:
  place_reader(const cluster_settings& settings, const fault_settings& wanted)
    : settings_(settings), wanted_(wanted), words_(words_of(wanted.where)) {}

  place_or_mistake read() const {
    if (words_.size() == 1 && words_[0] == "any")
      return fault_place{
        {{static_cast<std::uint32_t>(draw(wanted_.seed, 0) % settings_.world()), std::nullopt}}};
    if (words_.size() == 2 && words_[0] == "any" && words_[1] == "link")
      return any_link();
    if (words_.size() == 2 && words_[0] == "node")
      return node(words_[1]);
    const auto arrow = std::find_if(words_.begin(), words_.end(), [](std::string_view word) {
      return word == "->" || word == "<->";
    });
    const auto first = party(words_.begin(), arrow);
    if (const auto* mistake = std::get_if<fault_mistake>(&first))
      return *mistake;
    if (arrow == words_.end())
      return fault_place{{{std::get<std::uint32_t>(first), std::nullopt}}};
    const auto second = party(arrow + 1, words_.end());
    if (const auto* mistake = std::get_if<fault_mistake>(&second))
      return *mistake;
    return link(std::get<std::uint32_t>(first), std::get<std::uint32_t>(second), *arrow == "<->");
  }

private:
  using words = std::vector<std::string_view>;
  using party_or_mistake = std::variant<std::uint32_t, fault_mistake>;

  fault_mistake no_place() const {
    return {fmt::format("\"{}\" is no place", wanted_.where), std::string{examples}};
  }

  party_or_mistake party(words::const_iterator begin, words::const_iterator end) const {
    if (end - begin == 1 && *begin == "conductor")
      return conductor_spot;
    const auto rank = end - begin == 2 && *begin == "rank" ? number_of(*(begin + 1)) : std::nullopt;
    if (!rank)
      return no_place();
    if (*rank >= settings_.world())
      return fault_mistake{fmt::format("there is no rank {}", *rank),
                           fmt::format("ranks 0 to {} exist", settings_.world() - 1)};
    return static_cast<std::uint32_t>(*rank);
  }

  place_or_mistake node(std::string_view name) const {
    fault_place made;
    made.is_node = true;
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < settings_.nodes.size(); ++i) {
      known.push_back(settings_.nodes[i].name);
      if (settings_.nodes[i].name != name)
        continue;
      for (const auto& rank : place_ranks(settings_))
        if (number(rank.node) == i)
          made.spots.push_back({number(rank.rank), std::nullopt});
      return made;
    }
    return fault_mistake{fmt::format("there is no node \"{}\"", name),
                         fmt::format("the nodes are {}", fmt::join(known, ", "))};
  }

  place_or_mistake link(std::uint32_t from, std::uint32_t to, bool both) const {
    if (!exchange_frames(settings_, from, to))
      return fault_mistake{
        fmt::format("{} sends no frames to {}", name_party(from), name_party(to)),
        "neighbours do: the next stage, the own tensor group, the conductor"};
    const auto node = node_of(settings_, from);
    if (node == node_of(settings_, to))
      return fault_mistake{fmt::format("{} and {} live in one process, node {}: no frame travels",
                                       name_party(from),
                                       name_party(to),
                                       settings_.nodes[node].name),
                           "a link between two nodes would work"};
    fault_place made{{{from, to}}};
    if (both)
      made.spots.push_back({to, from});
    return made;
  }

  place_or_mistake any_link() const {
    std::vector<fault_spot> links;
    const auto tensor = static_cast<std::uint32_t>(settings_.parallel.tensor);
    for (std::uint32_t rank = 0; rank + tensor < settings_.world(); ++rank)
      if (node_of(settings_, rank) != node_of(settings_, rank + tensor))
        links.push_back({rank, rank + tensor});
    if (links.empty())
      return fault_mistake{"no boundary travels between two nodes of this cluster",
                           "two stages on two nodes have a link"};
    return fault_place{{links[draw(wanted_.seed, 0) % links.size()]}};
  }

  const cluster_settings& settings_;
  const fault_settings& wanted_;
  const words words_;
};

} // namespace

std::string name_spot(const fault_spot& spot) {
  return spot.to ? fmt::format("{} -> {}", name_party(spot.at), name_party(*spot.to))
                 : name_party(spot.at);
}

place_or_mistake read_place(const cluster_settings& settings, const fault_settings& wanted) {
  return place_reader{settings, wanted}.read();
}

} // namespace troupe
