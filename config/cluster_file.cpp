#include "config/cluster_file.hpp"

#include "config/nearest.hpp"
#include "config/setting_override.hpp"
#include "config/settings_check.hpp"
#include "config/settings_table.hpp"
#include "config/toml_reader.hpp"
#include "config/toml_screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
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
    : file_(file), folder_(folder_of(name)), found_(found) {
    settings_.file = name;
  }

  cluster_settings run() {
    if (const auto* nodes = list_of("node"))
      settings_.nodes.resize(nodes->size());
    if (const auto* faults = list_of("fault"))
      settings_.faults.resize(faults->size());
    check_section_names();
    std::map<std::string_view, std::size_t> seen;
    for (const auto& section : sections_of(settings_)) {
      if (is_list(section.name))
        read_section(section, (*list_of(section.name))[seen[section.name]++]);
      else if (const auto* table = file_.find(section.name))
        read_section(section, *table);
      else
        demand_required(section, file_.mark);
    }
    return std::move(settings_);
  }

private:
  static fs::path folder_of(std::string_view name) {
    std::error_code ignored; // An unknown working directory leaves paths relative.
    const auto absolute = fs::absolute(fs::path{name}, ignored);
    return absolute.parent_path();
  }

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

  void check_section_names() {
    cluster_settings example;
    const auto sections = all_sections(example);
    std::vector<std::string_view> known;
    for (const auto& section : sections)
      known.push_back(section.name);
    for (const auto& member : std::get<toml_value::table>(file_.content)) {
      if (std::find(known.begin(), known.end(), member.key) != known.end())
        continue;
      found_.add(point(member.key_mark,
                       fmt::format("there is no [{}] in a cluster file; it has {}",
                                   member.key,
                                   fmt::join(known, ", ")),
                       guess(member.key, known, {})));
    }
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

  // "did you mean ...": the nearest key of this table, else the table that has such a key.
  static std::string guess(std::string_view key,
                           std::span<const std::string_view> known,
                           std::string_view own_section) {
    if (const auto near = nearest(key, known); !near.empty())
      return fmt::format("did you mean \"{}\"?", near);
    cluster_settings example;
    for (const auto& section : all_sections(example))
      for (const auto& candidate : section.settings)
        if (candidate.name == key && section.name != own_section)
          return fmt::format("a key of {}", header_of(section.name));
    return "not known";
  }

  void read_section(const setting_section& section, const toml_value& value) {
    const auto* members = std::get_if<toml_value::table>(&value.content);
    if (!members) {
      found_.add(point(value.mark,
                       fmt::format("{} is a table, not {}", section.name, value.kind()),
                       fmt::format("write {} on a line of its own", header_of(section.name))));
      return;
    }
    for (const auto& member : *members)
      read_member(section, member);
    demand_required(section, value.mark, members);
  }

  void read_member(const setting_section& section, const toml_value::member& member) {
    std::vector<std::string_view> known;
    for (const auto& key : section.settings) {
      if (key.name == member.key) {
        read_value(section, key, member.value);
        return;
      }
      known.push_back(key.name);
    }
    found_.add(point(member.key_mark,
                     fmt::format("{} has no key \"{}\"; it has {}",
                                 header_of(section.name),
                                 member.key,
                                 fmt::join(known, ", ")),
                     guess(member.key, known, section.name)));
  }

  void read_value(const setting_section& section, const setting& key, const toml_value& value) {
    const auto full_name = fmt::format("{}{}", section.prefix, key.name);
    std::error_code ignored;
    const auto folder = value.mark.on_command_line() ? fs::current_path(ignored) : folder_;
    if (auto done = read_setting(key, full_name, value, folder); !done)
      found_.add(done.error().what);
    else
      settings_.origins.insert_or_assign(full_name, value.mark);
  }

  void demand_required(const setting_section& section,
                       const source_mark& where,
                       const toml_value::table* members = nullptr) {
    for (const auto& key : section.settings) {
      const auto given = [&](const toml_value::member& member) { return member.key == key.name; };
      if (!key.required || (members && std::any_of(members->begin(), members->end(), given)))
        continue;
      const auto message = fmt::format(
        "{} must have the key \"{}\": {}", header_of(section.name), key.name, accepted(key));
      found_.add(members ? point(where, message, fmt::format("{} = ...", key.name))
                         : fmt::format("{}: {}", settings_.file, message));
    }
  }

  const toml_value& file_;
  fs::path folder_;
  mistakes& found_;
  cluster_settings settings_;
};

void fill_in(cluster_settings& settings) {
  if (settings.cluster.head.empty() && !settings.origins.contains("cluster.head"))
    settings.cluster.head = settings.nodes.front().name;
  for (std::size_t i = 0; i < settings.nodes.size(); ++i)
    if (!settings.origins.contains(fmt::format("node[{}].advertise", i)))
      settings.nodes[i].advertise = settings.nodes[i].bind;
}

result<std::string> read_text(const fs::path& file) {
  std::error_code failure;
  const auto status = fs::status(file, failure);
  if (!fs::exists(status))
    return error{errc::not_found,
                 fmt::format("{}: there is no such file{}",
                             file.string(),
                             failure && failure != std::errc::no_such_file_or_directory
                               ? " (" + failure.message() + ")"
                               : "")};
  if (fs::is_directory(status))
    return error{errc::invalid_config,
                 fmt::format("{}: this is a folder, not a cluster file", file.string())};
  // A pipe or a terminal is fine, but an endless one (/dev/zero) must end: read one byte too many.
  std::ifstream stream{file, std::ios::binary};
  std::string text(toml_bounds{}.text_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (!stream.eof() && stream.gcount() == 0))
    return error{errc::io_error,
                 fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno))};
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
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
  auto text = read_text(file);
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
