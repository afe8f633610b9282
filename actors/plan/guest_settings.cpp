#include "actors/plan/guest_settings.hpp"

#include "config/cluster_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace troupe::actors {

namespace {

/// Sections and keys that each host has for itself, or that are of no concern to a node.
bool stays_at_home(std::string_view key) {
  constexpr std::string_view own[]{
    "cluster.log", "model.path", "model.tokenizer", "security.", "serve.", "generate.", "fault"};
  return std::any_of(
    std::begin(own), std::end(own), [key](const auto& one) { return key.starts_with(one); });
}

bool is_told_of_nodes(std::string_view field) {
  constexpr std::string_view told[]{
    "name", "bind", "advertise", "port", "ranks", "spare", "threads", "weight"};
  return std::find(std::begin(told), std::end(told), field) != std::end(told);
}

struct row_place {
  std::string_view section; ///< "model", or "node.a" of a node.
  std::string_view field;
};

row_place place_of(std::string_view key) {
  const auto dot = key.rfind('.');
  return {key.substr(0, dot), key.substr(dot + 1)};
}

/// As a cluster file, the rows that `wanted` says yes to.
template <class Wanted>
std::string write_rows(const std::vector<setting_row>& rows, Wanted wanted) {
  std::string text;
  std::string section;
  for (const auto& row : rows) {
    const auto [its_section, field] = place_of(row.key);
    const bool of_node = its_section.starts_with("node.");
    const bool is_absent = row.value == "\"\"";
    if (is_absent || !wanted(row.key) || (of_node && !is_told_of_nodes(field)))
      continue;
    if (its_section != section) {
      section = its_section;
      text += of_node ? std::string("[[node]]\n") : fmt::format("[{}]\n", section);
    }
    text += fmt::format("{} = {}\n", field, row.value);
  }
  return text;
}

} // namespace

std::string override_with(std::string_view key, std::string_view text) {
  return fmt::format("{}='{}'", key, text);
}

std::string shared_cluster_text(const cluster_settings& settings) {
  return write_rows(describe_settings(settings),
                    [](std::string_view key) { return !stays_at_home(key); });
}

std::string node_text(const cluster_settings& settings, std::size_t node) {
  const auto section = "node." + settings.nodes.at(node).name;
  return write_rows(describe_settings(settings),
                    [&](std::string_view key) { return place_of(key).section == section; });
}

namespace {

/// What a host has for itself and is needed to read a file that listens on a network.
std::vector<std::string> security_overrides(const security_settings& security) {
  std::vector<std::string> made;
  const auto add = [&](const char* key, const std::filesystem::path& file) {
    if (!file.empty())
      made.push_back(override_with(key, file.string()));
  };
  add("security.secret_file", security.secret_file);
  add("security.certificate", security.certificate);
  add("security.key", security.key);
  add("security.authority", security.authority);
  return made;
}

} // namespace

result<cluster_settings> parse_with_guest(const cluster_settings& settings,
                                          const node_settings& guest,
                                          const std::string& section,
                                          std::vector<std::string> overrides) {
  auto text = write_rows(describe_settings(settings), [](std::string_view key) {
    // Layers that were dealt by hand are so for the stages of the file alone.
    return !stays_at_home(key) && !key.starts_with("node.") && key != "parallel.pipeline"
           && key != "parallel.layers";
  });
  auto ranks = guest.spare ? 0 : guest.ranks;
  bool is_new = true;
  for (std::size_t node = 0; node < settings.nodes.size(); ++node) {
    const auto& other = settings.nodes[node];
    const bool returns = other.name == guest.name;
    is_new = is_new && !returns;
    text += returns ? section : node_text(settings, node);
    ranks += returns || other.spare ? 0 : other.ranks;
  }
  if (is_new)
    text += section;
  if (ranks % settings.parallel.tensor != 0)
    return error{errc::invalid_config,
                 fmt::format("a node with {} ranks makes no whole stage of {} tensor ranks; {} or "
                             "another multiple would, or `spare = true`",
                             guest.ranks,
                             settings.parallel.tensor,
                             settings.parallel.tensor)};
  overrides.push_back(override_with("model.path", settings.model.path.string()));
  overrides.push_back(fmt::format("parallel.pipeline={}", ranks / settings.parallel.tensor));
  return parse_cluster_text(text, settings.file, overrides);
}

result<cluster_settings> with_guest(const cluster_settings& settings, const std::string& section) {
  const auto security = security_overrides(settings.security);
  const auto lone =
    parse_lone_node("[model]\npath = \"demo\"\n" + section, settings.file, security);
  if (!lone)
    return lone.error();
  const auto& guest = lone->nodes.front();
  auto all = parse_with_guest(settings, guest, section, security);
  if (!all)
    return all.error();
  // What the text does not tell stays as it is.
  auto grown = settings;
  grown.nodes.resize(all->nodes.size());
  const auto index = static_cast<std::size_t>(all->find_node(guest.name) - all->nodes.data());
  grown.nodes[index] = all->nodes[index];
  return grown;
}

} // namespace troupe::actors
