#include "config/setting_override.hpp"

#include "config/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace troupe {

namespace {

// One option, and marks into it.
struct set_option {
  std::string_view text;

  source_mark mark(std::string_view part) const {
    return {.name = "--set",
            .line = 0,
            .column = static_cast<std::size_t>(part.data() - text.data()) + 1,
            .length = std::max<std::size_t>(part.size(), 1),
            .text = std::string{text}};
  }

  std::string
  complain(std::string_view part, std::string_view message, std::string_view comment) const {
    return point(mark(part), message, comment);
  }
};

std::string name_of(const toml_value& node) {
  const auto* name = node.find("name");
  const auto* text = name ? std::get_if<std::string>(&name->content) : nullptr;
  return text ? *text : "";
}

// "[2]" behind "node". nullopt when it is not a number in brackets.
std::optional<std::size_t> index_in(std::string_view brackets) {
  if (brackets.size() < 3 || brackets.front() != '[' || brackets.back() != ']')
    return std::nullopt;
  std::size_t index = 0;
  const auto* end = brackets.data() + brackets.size() - 1;
  const auto parsed = std::from_chars(brackets.data() + 1, end, index);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional{index} : std::nullopt;
}

// The [[node]] that `key` names: "node.a.threads" or "node[0].threads". nullptr after a complaint.
toml_value*
find_node(toml_value& file, const set_option& option, std::string_view key, mistakes& found) {
  auto* list = file.find("node");
  auto* nodes = list ? std::get_if<toml_value::array>(&list->content) : nullptr;
  if (!nodes || nodes->empty()) {
    found.add(option.complain(key, "the file has no [[node]] to change", "no node is known"));
    return nullptr;
  }
  std::vector<std::string> names;
  for (const auto& node : *nodes)
    names.push_back(name_of(node));
  const auto last_dot = key.rfind('.');
  const auto which = key.substr(4, last_dot == std::string_view::npos ? key.size() : last_dot - 4);
  if (which.starts_with('[')) {
    const auto index = index_in(which);
    if (index && *index < nodes->size())
      return &(*nodes)[*index];
    found.add(option.complain(which,
                              fmt::format("there is no node{}", which),
                              fmt::format("node[0] to node[{}] exist", nodes->size() - 1)));
    return nullptr;
  }
  const auto name = which.starts_with('.') ? which.substr(1) : std::string_view{};
  for (std::size_t i = 0; i < names.size() && !name.empty(); ++i)
    if (names[i] == name)
      return &(*nodes)[i];
  if (name.empty()) {
    found.add(option.complain(key,
                              "which node?",
                              fmt::format("node.{}.{} or node[0].{} would work",
                                          names[0],
                                          key.substr(last_dot + 1),
                                          key.substr(last_dot + 1))));
    return nullptr;
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto guess = nearest(name, known);
  found.add(option.complain(name,
                            fmt::format("there is no node \"{}\"", name),
                            guess.empty() ? fmt::format("the nodes are {}", fmt::join(names, ", "))
                                          : fmt::format("did you mean \"{}\"?", guess)));
  return nullptr;
}

// The table of a section, made where the file does not have it. nullptr when it is not a table.
toml_value* find_section(toml_value& file, const set_option& option, std::string_view name) {
  if (auto* section = file.find(name))
    return std::holds_alternative<toml_value::table>(section->content) ? section : nullptr;
  auto& sections = std::get<toml_value::table>(file.content);
  sections.push_back(
    {std::string{name}, option.mark(name), {toml_value::table{}, option.mark(name)}});
  return &sections.back().value;
}

} // namespace

void apply_override(toml_value& file, std::string_view text, mistakes& found) {
  const set_option option{text};
  const auto equals = text.find('=');
  const auto key = text.substr(0, equals);
  if (equals == std::string_view::npos || key.empty()) {
    found.add(option.complain(text, "not a setting", "key=value, such as model.context=4096"));
    return;
  }
  const auto dot = key.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == key.size()) {
    found.add(option.complain(key, "not the name of a setting", "such as model.context"));
    return;
  }
  const auto section = key.substr(0, dot);
  const auto name = key.substr(dot + 1);
  const bool of_node =
    section == "node" || section.starts_with("node.") || section.starts_with("node[");
  auto* table = of_node ? find_node(file, option, key, found) : find_section(file, option, section);
  auto* members = table ? std::get_if<toml_value::table>(&table->content) : nullptr;
  if (!members)
    return; // Either said already, or the reader of the tree will say that this is no table.
  std::erase_if(*members, [&](const toml_value::member& member) { return member.key == name; });
  members->push_back({std::string{name}, option.mark(name), read_toml_option(text, equals + 1)});
}

} // namespace troupe
