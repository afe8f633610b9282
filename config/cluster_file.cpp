#include "config/cluster_file.hpp"

#include "config/section_reader.hpp"
#include "config/setting_override.hpp"
#include "config/settings_check.hpp"
#include "config/settings_table.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_screen.hpp"

#include <fmt/format.h>

#include <map>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view smallest_file = "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"";

// The tree of one cluster file on its way into a cluster_settings.
class interpreter {
public:
  interpreter(const toml_value& file, std::string_view name, mistakes& found)
    : file_(file), found_(found), reader_(name, all_sections(example_), found) {
    settings_.file = name;
  }

  cluster_settings run() {
    if (const auto* nodes = list_of("node"))
      settings_.nodes.resize(nodes->size());
    if (const auto* faults = list_of("fault"))
      settings_.faults.resize(faults->size());
    check_lists();
    std::map<std::string_view, std::size_t> seen;
    for (const auto& section : sections_of(settings_)) {
      if (is_list(section.name))
        reader_.read(section, (*list_of(section.name))[seen[section.name]++]);
      else if (const auto* table = file_.find(section.name))
        reader_.read(section, *table);
      else
        reader_.demand_required(section);
    }
    settings_.origins = reader_.origins();
    return std::move(settings_);
  }

private:
  // The [[section]]s of that name; nullptr when there are none.
  const toml_value::array* list_of(std::string_view section) const {
    const auto* found = file_.find(section);
    const auto* list = found ? std::get_if<toml_value::array>(&found->content) : nullptr;
    return list && !list->empty() ? list : nullptr;
  }

  // The sections of a file with one of each: every name that can stand at the top.
  static std::vector<setting_section> all_sections(cluster_settings& example) {
    example.nodes.resize(1);
    example.faults.resize(1);
    return sections_of(example);
  }

  void check_lists() {
    reader_.check_names(file_, "a cluster file");
    if (!list_of("node"))
      complain_about_nodes();
    if (const auto* faults = file_.find("fault"); faults && !list_of("fault"))
      found_.add(point(faults->mark, "faults are a list of tables", "write [[fault]]"));
  }

  void complain_about_nodes() {
    const auto* nodes = file_.find("node");
    found_.add(nodes ? point(nodes->mark, "nodes are a list of tables", "write [[node]]")
                     : fmt::format("{}: there is no [[node]]; the smallest cluster file is\n{}",
                                   settings_.file,
                                   smallest_file));
  }

  const toml_value& file_;
  mistakes& found_;
  cluster_settings example_; ///< Before the reader, which guesses by it.
  section_reader reader_;
  cluster_settings settings_;
};

void fill_in(cluster_settings& settings) {
  if (settings.cluster.head.empty() && !settings.origins.contains("cluster.head"))
    settings.cluster.head = settings.nodes.front().name;
  for (std::size_t i = 0; i < settings.nodes.size(); ++i)
    if (!settings.origins.contains(fmt::format("node[{}].advertise", i)))
      settings.nodes[i].advertise = settings.nodes[i].bind;
}

/// `adjust` sees the settings before it is checked that they go together.
template <class Adjust>
result<cluster_settings> parse_text(std::string_view text,
                                    std::string_view name,
                                    std::span<const std::string> overrides,
                                    Adjust adjust) {
  auto screened = screen_toml(text, name);
  if (!screened)
    return screened.error();
  auto tree = read_toml(*screened, name);
  if (!tree)
    return tree.error();
  if (std::get<toml_value::table>(tree->content).empty())
    return error{
      errc::invalid_config,
      fmt::format("{}: the file is empty; the smallest cluster file is\n{}", name, smallest_file)};
  mistakes found;
  for (const auto& option : overrides) {
    if (auto fine = screen_toml(option, "--set"); !fine)
      return fine.error();
    apply_override(*tree, option, found);
  }
  auto settings = interpreter{*tree, name, found}.run();
  if (!found.none())
    return found.to_error();
  fill_in(settings);
  adjust(settings);
  check_settings(settings, found);
  if (!found.none())
    return found.to_error();
  return settings;
}

} // namespace

result<cluster_settings> parse_cluster_text(std::string_view text,
                                            std::string_view name,
                                            std::span<const std::string> overrides) {
  return parse_text(text, name, overrides, [](cluster_settings&) {});
}

result<cluster_settings> parse_lone_node(std::string_view text,
                                         std::string_view name,
                                         std::span<const std::string> overrides) {
  // Of a whole cluster the check asks for a head that works and can be found.
  node_settings asked;
  auto settings = parse_text(text, name, overrides, [&](cluster_settings& lone) {
    auto& node = lone.nodes.front();
    asked = node;
    node.spare = false;
    node.port = node.port == 0 ? 1 : node.port;
    lone.parallel.pipeline = node.ranks;
  });
  if (settings) {
    settings->nodes.front().spare = asked.spare;
    settings->nodes.front().port = asked.port;
  }
  return settings;
}

result<cluster_settings> read_cluster_file(const fs::path& file,
                                           std::span<const std::string> overrides,
                                           security_files files) {
  auto text = read_toml_file(file, "a cluster file");
  if (!text)
    return text.error();
  auto settings = parse_cluster_text(*text, file.string(), overrides);
  if (settings && files == security_files::check)
    if (auto fine = check_security_files(*settings); !fine)
      return fine.error();
  return settings;
}

std::vector<setting_row> describe_settings(const cluster_settings& settings) {
  auto copy = settings; // The table binds to settings that may be written; this one is not.
  std::vector<setting_row> rows;
  std::size_t node = 0;
  for (const auto& section : sections_of(copy)) {
    const auto shown =
      section.name == "node" ? fmt::format("node.{}.", copy.nodes[node++].name) : section.prefix;
    for (const auto& key : section.settings) {
      const auto origin = settings.origins.find(fmt::format("{}{}", section.prefix, key.name));
      rows.push_back({fmt::format("{}{}", shown, key.name),
                      write_setting(key),
                      origin == settings.origins.end() ? "default" : origin->second.place(),
                      std::string{key.reason}});
    }
  }
  return rows;
}

} // namespace troupe
