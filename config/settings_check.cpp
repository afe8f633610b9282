#include "config/settings_check.hpp"

#include "config/address.hpp"
#include "config/fault.hpp"
#include "config/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

namespace troupe {

namespace {

std::string node_key(std::size_t index, std::string_view name) {
  return fmt::format("node[{}].{}", index, name);
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 63
         && std::all_of(name.begin(), name.end(), [](unsigned char c) {
              return std::isalnum(c) != 0 || c == '-' || c == '_';
            });
}

void check_names(const cluster_settings& s, mistakes& found) {
  constexpr std::string_view rule = "1 to 63 letters, digits, '-' and '_'";
  if (!is_name(s.cluster.name))
    found.add(s.point_at("cluster.name", "not a name for a cluster", rule));
  std::map<std::string_view, const node_settings*> seen;
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    const auto& node = s.nodes[i];
    if (!is_name(node.name))
      found.add(s.point_at(node_key(i, "name"), "not a name for a node", rule));
    const auto [first, is_new] = seen.try_emplace(node.name, &node);
    if (!is_new)
      found.add(s.point_at(node_key(i, "name"),
                           fmt::format("two nodes are called \"{}\": one at {}, one at {}",
                                       node.name,
                                       first->second->advertise,
                                       node.advertise),
                           "each node needs a name of its own"));
  }
}

void check_head(const cluster_settings& s, mistakes& found) {
  if (s.find_node(s.cluster.head))
    return;
  std::vector<std::string_view> names;
  for (const auto& node : s.nodes)
    names.push_back(node.name);
  const auto guess = nearest(s.cluster.head, names);
  found.add(s.point_at("cluster.head",
                       fmt::format("the head is \"{}\", which is not a node", s.cluster.head),
                       guess.empty() ? fmt::format("the nodes are {}", fmt::join(names, ", "))
                                     : fmt::format("did you mean \"{}\"?", guess)));
}

void check_addresses(const cluster_settings& s, mistakes& found) {
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    const auto& node = s.nodes[i];
    if (const auto wrong = address_mistake(node.bind); !wrong.empty()) {
      found.add(s.point_at(node_key(i, "bind"),
                           fmt::format("node {} cannot listen on \"{}\"", node.name, node.bind),
                           wrong));
      continue;
    }
    const auto wrong = address_mistake(node.advertise);
    if (wrong.empty() && !is_unspecified(node.advertise))
      continue;
    const bool own = s.origins.contains(node_key(i, "advertise"));
    found.add(s.point_at(
      node_key(i, own ? "advertise" : "bind"),
      fmt::format("the others cannot reach node {} at \"{}\"", node.name, node.advertise),
      !wrong.empty() ? wrong : "every interface; say in `advertise` which address the others use"));
  }
}

// Where a node would stand in the way of another with the same port. Every interface of two hosts
// is no collision: there only the advertised addresses count.
std::vector<std::string> doors(const node_settings& node) {
  auto reached = canonical_address(node.advertise);
  auto bound = canonical_address(node.bind);
  if (is_unspecified(node.bind) || bound == reached)
    return {std::move(reached)};
  return {std::move(reached), std::move(bound)};
}

void check_ports(const cluster_settings& s, mistakes& found) {
  std::map<std::pair<std::string, std::uint64_t>, const node_settings*> taken;
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    const auto& node = s.nodes[i];
    for (auto& door : node.port == 0 ? std::vector<std::string>{} : doors(node)) {
      const auto [first, is_new] = taken.try_emplace({std::move(door), node.port}, &node);
      if (is_new || first->second == &node)
        continue;
      found.add(s.point_at(node_key(i, "port"),
                           fmt::format("nodes {} and {} have the same address and port: {}:{} "
                                       "and {}:{}",
                                       first->second->name,
                                       node.name,
                                       first->second->advertise,
                                       first->second->port,
                                       node.advertise,
                                       node.port),
                           "another port, or 0 for any free one, would work"));
      break;
    }
  }
  const auto* head = s.find_node(s.cluster.head);
  if (!head || head->port != 0 || s.on_one_host())
    return;
  const auto index = s.head_index();
  const auto port = node_key(index, "port");
  found.add(
    s.point_at(s.origins.contains(port) ? port : node_key(index, "name"),
               fmt::format("the head {} needs a port, for the other hosts to find it", head->name),
               "port = 7000 would work; 0 is for clusters on one host"));
}

void check_security(const cluster_settings& s, mistakes& found) {
  const auto& security = s.security;
  const std::pair<std::string_view, bool> parts[] = {{"certificate", !security.certificate.empty()},
                                                     {"key", !security.key.empty()},
                                                     {"authority", !security.authority.empty()}};
  const auto given =
    std::count_if(std::begin(parts), std::end(parts), [](const auto& part) { return part.second; });
  if (given != 0 && given != 3)
    for (const auto& [name, present] : parts)
      if (!present)
        found.add(s.point_at(security.has_certificates()
                               ? "security.certificate"
                               : (security.key.empty() ? "security.authority" : "security.key"),
                             fmt::format("[security] has no {}", name),
                             "certificate, key and authority go together"));
  if (security.has_secret() || given > 0)
    return;
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    const auto& node = s.nodes[i];
    const bool listens = !is_loopback(node.bind);
    if (!listens && is_loopback(node.advertise))
      continue;
    found.add(s.point_at(node_key(i, listens ? "bind" : "advertise"),
                         fmt::format("node {} {} {} without a secret or certificates",
                                     node.name,
                                     listens ? "listens beyond loopback on" : "is reached at",
                                     listens ? node.bind : node.advertise),
                         "anybody there could join; set security.secret_file, or certificates"));
    return; // Once is enough: the remedy is the same for all nodes.
  }
}

// Where the shape was asked for, to point at; the first of the two that is not a default.
std::string_view shape_key(const cluster_settings& s) {
  return s.origins.contains("parallel.pipeline") && !s.origins.contains("parallel.tensor")
           ? "parallel.pipeline"
           : "parallel.tensor";
}

void check_shape(const cluster_settings& s, mistakes& found) {
  const auto& parallel = s.parallel;
  auto shape = topology::make(
    {.data = parallel.data, .pipeline = parallel.pipeline, .tensor = parallel.tensor});
  if (!shape) {
    found.add(s.point_at(parallel.data > 1 ? "parallel.data" : shape_key(s), shape.error().what));
    return;
  }
  std::uint64_t ranks = 0;
  for (const auto& node : s.nodes)
    ranks += node.spare ? 0 : node.ranks;
  if (ranks != shape->world())
    found.add(s.point_at(
      shape_key(s),
      fmt::format("{} node{} with {} rank{} in all, but pipeline {} x tensor {} needs {}",
                  s.nodes.size(),
                  s.nodes.size() == 1 ? "" : "s",
                  ranks,
                  ranks == 1 ? "" : "s",
                  parallel.pipeline,
                  parallel.tensor,
                  shape->world()),
      ranks < shape->world() ? "add nodes, give them more `ranks`, or make these smaller"
                             : "remove nodes or ranks, or make these larger"));
  if (parallel.least_stages > parallel.pipeline)
    found.add(s.point_at("parallel.least_stages",
                         fmt::format("least_stages is {}, but pipeline is {}",
                                     parallel.least_stages,
                                     parallel.pipeline),
                         "at most as many as there are stages"));
  if (!parallel.layers.empty() && parallel.layers.size() != parallel.pipeline)
    found.add(s.point_at("parallel.layers",
                         fmt::format("layers names {} stages, but pipeline is {}",
                                     parallel.layers.size(),
                                     parallel.pipeline),
                         "one range a stage"));
}

void check_amounts(const cluster_settings& s, mistakes& found) {
  if (s.schedule.prefill_chunk > s.schedule.step_tokens)
    found.add(
      s.point_at(s.origins.contains("schedule.prefill_chunk") ? "schedule.prefill_chunk"
                                                              : "schedule.step_tokens",
                 fmt::format("prefill_chunk is {}, but a step has only step_tokens = {} rows",
                             s.schedule.prefill_chunk,
                             s.schedule.step_tokens),
                 "prefill_chunk is at most step_tokens"));
  const auto context = s.model.context_tokens;
  if (context != 0 && s.limits.max_prompt_tokens > context)
    found.add(s.point_at("limits.max_prompt_tokens",
                         fmt::format("max_prompt_tokens is {}, but the context holds {}",
                                     s.limits.max_prompt_tokens,
                                     context),
                         "at most model.context"));
  if (s.limits.max_new_tokens != 0 && s.generate.max_tokens > s.limits.max_new_tokens)
    found.add(s.point_at(s.origins.contains("generate.max_tokens") ? "generate.max_tokens"
                                                                   : "limits.max_new_tokens",
                         fmt::format("generate.max_tokens is {}, but limits.max_new_tokens is {}",
                                     s.generate.max_tokens,
                                     s.limits.max_new_tokens),
                         "the default must itself be allowed"));
  if (s.deadlines.progress_ms >= s.deadlines.step_ms)
    found.add(s.point_at(s.origins.contains("deadlines.progress_ms") ? "deadlines.progress_ms"
                                                                     : "deadlines.step_ms",
                         fmt::format("progress_ms is {}, but a step may take only step_ms = {}",
                                     s.deadlines.progress_ms,
                                     s.deadlines.step_ms),
                         "a frozen rank must be noticed within a step: progress_ms < step_ms"));
}

} // namespace

void check_settings(const cluster_settings& settings, mistakes& found) {
  check_names(settings, found);
  check_head(settings, found);
  check_addresses(settings, found);
  check_ports(settings, found);
  check_security(settings, found);
  check_shape(settings, found);
  check_amounts(settings, found);
  if (found.none()) // Places mean something only where ranks and nodes do.
    static_cast<void>(read_faults(settings, found));
}

} // namespace troupe
