#include "compute/chat/filters.hpp"

#include "compute/chat/known_names.hpp"
#include "compute/chat/list_filters.hpp"
#include "compute/chat/methods.hpp"
#include "compute/chat/text_methods.hpp"
#include "compute/chat/unicode.hpp"
#include "compute/chat/value_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace troupe::compute::chat {

namespace {

value to_json(run& running, position at, const value& of, const call_values& with) {
  parameters given(
    running, at, "tojson", with, {"indent", "ensure_ascii", "separators", "sort_keys"});
  json_style style;
  auto indent = given.at(0);
  if (auto text = indent.as_text())
    style.indent = *text;
  else if (!indent.is_undefined() && !indent.is_none())
    style.indent = std::string(
      static_cast<std::size_t>(std::clamp<std::int64_t>(given.integer(0, 0), 0, 64)), ' ');
  style.ensure_ascii = given.flag(1, false);
  style.sort_keys = given.flag(3, false);
  if (auto separators = given.at(2).as_list(); separators != nullptr && separators->size() == 2) {
    auto item = running.expect_text(at, (*separators)[0], "a separator of tojson");
    auto key = running.expect_text(at, (*separators)[1], "a separator of tojson");
    if (item == nullptr || key == nullptr)
      return {};
    style.item_separator = *item;
    style.key_separator = *key;
  }
  std::string_view unwritable;
  auto made =
    chat::to_json(of, style, std::min(running.work(), running.limits().text_bytes), unwritable);
  if (!unwritable.empty())
    return running.fail(at, fmt::format("a value of type {} is not JSON", unwritable));
  return running.text(at, std::move(made));
}

value or_default(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "default", with, {"default_value", "boolean"});
  bool takes = of.is_undefined() || (given.flag(1, false) && !is_true(of));
  return !takes ? of : given.has(0) ? given.at(0) : value("");
}

value trim(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "trim", with, {"chars"});
  auto characters = given.optional_text(0);
  auto text = running.printed(at, of);
  return running.text(at, std::string(trim_end(trim_start(text, characters), characters)));
}

value replace_in(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "replace", with, {"old", "new", "count"});
  auto old = running.printed(at, given.required(0)), by = running.printed(at, given.required(1));
  auto most = given.at(2).is_none() ? -1 : given.integer(2, -1);
  return replace(running, at, running.printed(at, of), old, by, most);
}

value indent(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "indent", with, {"width", "first", "blank"});
  std::string step;
  if (auto text = given.at(0).as_text())
    step = *text;
  else
    step.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(given.integer(0, 4), 0, 4096)),
                ' ');
  bool first = given.flag(1, false), blank = given.flag(2, false);
  auto text = running.printed(at, of) + "\n"; // as Jinja: an empty last line is one
  std::string made;
  std::size_t line = 0;
  for (auto one : lines_of(text, false)) {
    if (!running.spend(at, one.size() + step.size()))
      return {};
    made += line > 0 ? "\n" : "";
    if (line > 0 ? blank || !one.empty() : first)
      made += step;
    made += one;
    ++line;
  }
  return running.text(at, std::move(made));
}

/// Each word large at its start, where words stand after a blank or an opening bracket.
std::string titled(std::string_view text) {
  std::string made;
  bool starts = true;
  for (auto character : characters_of(text)) {
    made += starts ? to_upper(character) : to_lower(character);
    starts = is_space(static_cast<unsigned char>(character[0]))
             || std::string_view("-({[<").find(character[0]) != std::string_view::npos;
  }
  return made;
}

template <std::string (*Map)(std::string_view)>
value map_text(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "a filter of texts", with, {});
  return running.text(at, Map(running.printed(at, of)));
}

value to_string(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "string", with, {});
  return of.as_text() != nullptr ? of : running.text(at, running.printed(at, of));
}

/// The number that the text is, as Python's float(); nothing if it is none.
std::optional<double> read_real(std::string_view text) {
  text = trim_end(trim_start(text));
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-')
    text.remove_prefix(1);
  double number = 0;
  auto end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc() || read.ptr != end)
    return std::nullopt;
  return number;
}

value to_whole(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "int", with, {"default", "base"});
  auto otherwise = given.has(0) ? given.at(0) : value(0);
  std::int64_t whole = 0;
  if (to_integer(of, whole))
    return whole;
  if (of.is_undefined())
    return running.fail_undefined(at, of);
  std::optional<double> real;
  if (auto number = of.as_real()) {
    real = *number;
  } else if (auto text = of.as_text()) {
    auto digits = trim_end(trim_start(*text));
    if (digits.starts_with('+'))
      digits.remove_prefix(1);
    auto base = static_cast<int>(std::clamp<std::int64_t>(given.integer(1, 10), 2, 36));
    if (base == 16 && (digits.starts_with("0x") || digits.starts_with("0X")))
      digits.remove_prefix(2);
    auto read = std::from_chars(digits.data(), digits.data() + digits.size(), whole, base);
    if (read.ec == std::errc() && read.ptr == digits.data() + digits.size())
      return whole;
    real = read_real(*text);
  }
  constexpr double most = 9.2e18; // within 64 bits
  if (!real || std::isnan(*real) || std::abs(*real) > most)
    return otherwise;
  return static_cast<std::int64_t>(*real);
}

value to_real(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "float", with, {"default"});
  double number = 0;
  if (to_number(of, number))
    return number;
  if (of.is_undefined())
    return running.fail_undefined(at, of);
  auto read = of.as_text() != nullptr ? read_real(*of.as_text()) : std::nullopt;
  return read ? value(*read) : given.has(0) ? given.at(0) : value(0.0);
}

value absolute(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "abs", with, {});
  if (auto real = of.as_real())
    return std::abs(*real);
  std::int64_t whole = 0;
  if (!running.expect_integer(at, of, "what abs is asked of", whole))
    return {};
  if (whole == std::numeric_limits<std::int64_t>::min())
    return running.fail(at, "the result has more than the 64 bits of whole numbers");
  return std::abs(whole);
}

value rounded(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "round", with, {"precision", "method"});
  auto precision = std::clamp<std::int64_t>(given.integer(0, 0), -300, 300);
  auto method = given.text(1, "common");
  double number = 0;
  if (!to_number(of, number))
    return running.fail(at, fmt::format("a value of type {} cannot be rounded", type_name(of)));
  double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil")
    return std::ceil(number * scale) / scale;
  if (method == "floor")
    return std::floor(number * scale) / scale;
  if (method != "common")
    return running.fail(
      at, fmt::format("round has no method '{}'; there are: common, ceil, floor", method));
  if (precision < 0) {
    double made = std::nearbyint(number * scale) / scale;
    return of.as_real() != nullptr ? value(made) : value(static_cast<std::int64_t>(made));
  }
  std::int64_t whole = 0;
  if (to_integer(of, whole) && precision >= 0)
    return whole;
  // The decimal digits decide, as in Python, not the product.
  double exact = number;
  auto text = fmt::format("{:.{}f}", number, precision);
  std::from_chars(text.data(), text.data() + text.size(), exact);
  return exact;
}

value length(run& running, position at, const value& of, const call_values& with) {
  parameters given(running, at, "length", with, {});
  if (auto text = of.as_text())
    return running.spend(at, text->size() / 4) ? value(count_characters(*text)) : value();
  if (auto list = of.as_list())
    return list->size();
  if (auto entries = of.as_dictionary())
    return entries->size();
  if (of.is_undefined())
    return 0;
  return running.fail(at, fmt::format("a value of type {} has no length", type_name(of)));
}

value items(run& running, position at, const value& of, const call_values& with) {
  if (of.is_undefined())
    return value::items{};
  if (of.as_dictionary() == nullptr)
    return running.fail(
      at, fmt::format("items needs a dictionary, not a value of type {}", type_name(of)));
  return call_method(running, at, of, "items", with);
}

using filter_body = value (*)(run&, position, const value&, const call_values&);

struct named_filter {
  std::string_view name;
  filter_body body;
};

constexpr named_filter filters[] = {
  {"abs", absolute},
  {"capitalize", map_text<capitalized>},
  {"count", length},
  {"d", or_default},
  {"default", or_default},
  {"dictsort", dictsort},
  {"first", first_of},
  {"float", to_real},
  {"indent", indent},
  {"int", to_whole},
  {"items", items},
  {"join", join},
  {"last", last_of},
  {"length", length},
  {"list", to_list},
  {"lower", map_text<to_lower>},
  {"map", map_items},
  {"max", greatest},
  {"min", least},
  {"reject", reject},
  {"rejectattr", rejectattr},
  {"replace", replace_in},
  {"reverse", reversed},
  {"round", rounded},
  {"safe", to_string},
  {"select", select},
  {"selectattr", selectattr},
  {"sort", sorted},
  {"string", to_string},
  {"sum", sum},
  {"title", map_text<titled>},
  {"tojson", to_json},
  {"trim", trim},
  {"unique", unique},
  {"upper", map_text<to_upper>},
};

const named_filter* find(std::string_view name) noexcept {
  auto found = std::find_if(
    std::begin(filters), std::end(filters), [&](const auto& one) { return one.name == name; });
  return found == std::end(filters) ? nullptr : found;
}

} // namespace

bool is_filter(std::string_view name) noexcept {
  return find(name) != nullptr;
}

std::string filter_names() {
  std::string all;
  for (const auto& one : filters)
    all.append(all.empty() ? "" : ", ").append(one.name);
  return all;
}

value call_filter(
  run& running, position at, std::string_view name, const value& of, const call_values& with) {
  return running.spend(at, run::node_cost) ? find(name)->body(running, at, of, with) : value();
}

} // namespace troupe::compute::chat
