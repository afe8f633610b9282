#include "config/toml_reader.hpp"

#include "config/toml_screen.hpp"

#include <fmt/core.h>
#include <toml.hpp>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>
#include <type_traits>

namespace troupe {

namespace {

// toml11 keeps the place of a value, not that of its key: look for it left of the value, or in the
// brackets of a header.
source_mark mark_of_key(const std::string& key, const source_mark& value) {
  auto mark = value;
  const auto before = value.column > 0 ? value.column - 1 : 0;
  auto found = mark.text.rfind(key, before);
  if (found == std::string::npos)
    found = mark.text.find(key);
  if (found != std::string::npos) {
    mark.column = found + 1;
    mark.length = key.size();
  }
  return mark;
}

// toml11 saturates numbers that do not fit without a word: read the digits once more. The region of
// a value is its text, so this sees what the file says.
template <class Number>
bool fits(const source_mark& mark) {
  std::string digits;
  const std::string_view text = mark.text;
  for (const char c : text.substr(std::min(mark.column - 1, text.size()), mark.length))
    if (c != '_' && c != '+')
      digits += c;
  Number value{};
  const auto* end = digits.data() + digits.size();
  if constexpr (std::is_floating_point_v<Number>) {
    return std::from_chars(digits.data(), end, value).ec == std::errc{};
  } else {
    const auto base = digits.starts_with("0x")   ? 16
                      : digits.starts_with("0o") ? 8
                      : digits.starts_with("0b") ? 2
                                                 : 10;
    const auto* begin = digits.data() + (base == 10 ? 0 : 2);
    return std::from_chars(begin, end, value, base).ec == std::errc{};
  }
}

// What toml11 says, with our first line: "file:line: what" and its drawing of the place.
error syntax_mistake(const toml::exception& cause) {
  std::string text = cause.what();
  const auto end_of_line = text.find('\n');
  auto headline = text.substr(0, end_of_line);
  auto drawing = end_of_line == std::string::npos ? std::string{} : text.substr(end_of_line + 1);
  // "[error] toml::parse_array: missing array separator": the function is the library's business.
  constexpr std::string_view tag = "[error] ";
  if (headline.starts_with(tag))
    headline.erase(0, tag.size());
  if (headline.starts_with("toml::"))
    headline.erase(0, std::min(headline.find(": "), headline.size() - 2) + 2);
  // " --> file" repeats what our first line says.
  if (const auto arrow = drawing.find("-->"); arrow < drawing.find('\n'))
    drawing.erase(0, drawing.find('\n') + 1);
  while (!drawing.empty() && drawing.back() == '\n')
    drawing.pop_back();
  if (headline.empty())
    headline = "this is not TOML";
  return {
    errc::invalid_config,
    fmt::format(
      "{}:{}: {}\n{}", cause.location().file_name(), cause.location().line(), headline, drawing)};
}

// Turns the library's tree into ours. Finds lines in a table of their beginnings: location() of
// toml11 counts all lines from the first for each value, which takes minutes for a file of 256 KiB.
class tree_builder {
public:
  tree_builder(std::string_view text, std::string_view name) : text_(text), name_(name) {
    line_begins_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        line_begins_.push_back(i + 1);
  }

  result<toml_value> tree(const toml::value& value) const {
    auto mark = mark_of(value);
    switch (value.type()) {
    case toml::value_t::boolean: return toml_value{value.as_boolean(), std::move(mark)};
    case toml::value_t::integer:
      if (!fits<std::int64_t>(mark))
        return error{errc::invalid_config,
                     point(mark, "the integer is too large", "64 bits are the most")};
      return toml_value{std::int64_t{value.as_integer()}, std::move(mark)};
    case toml::value_t::floating:
      if (!fits<double>(mark))
        return error{errc::invalid_config,
                     point(mark, "the number is out of range", "1.7e308 is the most")};
      return toml_value{value.as_floating(), std::move(mark)};
    case toml::value_t::string: return toml_value{value.as_string().str, std::move(mark)};
    case toml::value_t::array: return array(value, std::move(mark));
    case toml::value_t::table: return table(value, std::move(mark));
    default: return toml_value{toml_value::date{}, std::move(mark)};
    }
  }

private:
  result<toml_value> array(const toml::value& value, source_mark mark) const {
    toml_value::array elements;
    for (const auto& content : value.as_array()) {
      auto element = tree(content);
      if (!element)
        return element;
      elements.push_back(std::move(*element));
    }
    return toml_value{std::move(elements), std::move(mark)};
  }

  result<toml_value> table(const toml::value& value, source_mark mark) const {
    toml_value::table members;
    for (const auto& [key, content] : value.as_table()) {
      auto member = tree(content);
      if (!member)
        return member;
      auto key_mark = mark_of_key(key, member->mark);
      members.push_back({key, std::move(key_mark), std::move(*member)});
    }
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.key_mark.line, a.key_mark.column, std::string_view{a.key})
             < std::tuple(b.key_mark.line, b.key_mark.column, std::string_view{b.key});
    });
    return toml_value{std::move(members), std::move(mark)};
  }

  source_mark mark_of(const toml::value& value) const {
    const auto* place = dynamic_cast<const toml::detail::region*>(toml::detail::get_region(value));
    if (!place) // The root of a file, or a table that only a dotted key implies.
      return mark_at(0, 1);
    return mark_at(static_cast<std::size_t>(place->first() - place->begin()), place->size());
  }

  source_mark mark_at(std::size_t offset, std::size_t length) const {
    const auto next = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
    const auto begin = *(next - 1);
    auto line = text_.substr(begin, next == line_begins_.end() ? text_.size() : *next - 1 - begin);
    while (line.ends_with('\r') || line.ends_with('\n'))
      line.remove_suffix(1);
    return {.name = std::string{name_},
            .line = static_cast<std::size_t>(next - line_begins_.begin()),
            .column = offset - begin + 1,
            .length = length,
            .text = std::string{line}};
  }

  std::string_view text_;
  std::string_view name_;
  std::vector<std::size_t> line_begins_;
};

template <class Value>
auto* find_in(Value& value, std::string_view key) {
  auto* members = std::get_if<toml_value::table>(&value.content);
  decltype(&value) found = nullptr;
  if (members)
    for (auto& member : *members)
      if (member.key == key)
        found = &member.value;
  return found;
}

void move_into_option(toml_value& value, std::string_view option, std::size_t offset) {
  // Marks were made for "x=<value>": two bytes for the key.
  value.mark.name = "--set";
  value.mark.line = 0;
  value.mark.column = value.mark.column + offset - 2;
  value.mark.text = option;
  if (auto* elements = std::get_if<toml_value::array>(&value.content))
    for (auto& element : *elements)
      move_into_option(element, option, offset);
  if (auto* members = std::get_if<toml_value::table>(&value.content))
    for (auto& member : *members)
      move_into_option(member.value, option, offset);
}

} // namespace

const toml_value* toml_value::find(std::string_view key) const {
  return find_in(*this, key);
}

toml_value* toml_value::find(std::string_view key) {
  return find_in(*this, key);
}

std::string_view toml_value::kind() const {
  constexpr std::string_view kinds[] = {"true or false",
                                        "an integer",
                                        "a number with a fraction",
                                        "a string",
                                        "a date",
                                        "a list",
                                        "a table"};
  return kinds[content.index()];
}

result<toml_value> read_toml(std::string_view text, std::string_view name) {
  try {
    std::istringstream stream{std::string{text}};
    return tree_builder{text, name}.tree(toml::parse(stream, std::string{name}));
  } catch (const toml::exception& cause) {
    return syntax_mistake(cause);
  } catch (const std::exception& cause) {
    return error{errc::invalid_config, fmt::format("{}: {}", name, cause.what())};
  }
}

toml_value read_toml_option(std::string_view option, std::size_t offset) {
  const auto text = option.substr(offset);
  if (auto tree = read_toml(fmt::format("x={}", text), "--set"); tree) {
    auto& members = std::get<toml_value::table>(tree->content);
    if (members.size() == 1 && members[0].key == "x") {
      move_into_option(members[0].value, option, offset);
      return std::move(members[0].value);
    }
  }
  return {std::string{text},
          source_mark{.name = "--set",
                      .column = offset + 1,
                      .length = std::max<std::size_t>(text.size(), 1),
                      .text = std::string{option}}};
}

} // namespace troupe
