#include "config/setting.hpp"
#include "config/setting_words.hpp"

#include <fmt/core.h>

#include <span>

namespace troupe {

using namespace setting_words;

std::string setting_words::toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

namespace {

std::string list_of(std::span<const std::string_view> words) {
  std::string text;
  for (const auto word : words)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  return text;
}

std::string range_text(const bounds& allowed) {
  const auto least = fmt::format("{} {}", allowed.above ? "above" : "from", allowed.least);
  if (allowed.most >= static_cast<double>(std::numeric_limits<std::int64_t>::max()))
    return least;
  return fmt::format("{} to {}", least, allowed.most);
}

std::string write_size(std::uint64_t bytes) {
  if (bytes == 0)
    return "\"auto\"";
  for (const auto& [name, size] : units)
    if (bytes % size == 0 && bytes >= size && name.size() == 3)
      return fmt::format("\"{}{}\"", bytes / size, name);
  return fmt::format("{}", bytes);
}

} // namespace

std::string accepted(const setting& key) {
  return std::visit(
    overloaded{
      [](bool*) -> std::string { return "true or false"; },
      [&](std::uint64_t*) { return fmt::format("an integer {}", range_text(key.allowed)); },
      [](const byte_count&) -> std::string {
        return "\"auto\", a size such as \"512MiB\", \"2GiB\" or \"4GB\", or a number of bytes";
      },
      [&](double*) { return fmt::format("a number {}", range_text(key.allowed)); },
      [](std::string*) -> std::string { return "a string"; },
      [](const choice& slot) {
        return slot.known.size() == 1 ? list_of(slot.known) : "one of " + list_of(slot.known);
      },
      [](const path_slot& slot) {
        return slot.kept.empty() ? std::string{"a path"}
                                 : fmt::format("a path, or \"{}\"", slot.kept);
      },
      [](dtype*) { return "one of " + list_of(dtype_names); },
      [](std::optional<dtype>*) { return "one of " + list_of(held_dtype_names); },
      [](log::level*) { return "one of " + list_of(levels); },
      [](std::vector<std::string>*) -> std::string { return "a list of strings"; },
      [](std::vector<range>*) -> std::string {
        return "a list with the first and the end layer of each stage, such as [[0, 4], [4, 6]]";
      }},
    key.slot);
}

std::string write_setting(const setting& key) {
  return std::visit(
    overloaded{
      [](bool* value) -> std::string { return *value ? "true" : "false"; },
      [](std::uint64_t* value) { return std::to_string(*value); },
      [](const byte_count& slot) { return write_size(*slot.bytes); },
      [](double* value) {
        const auto text = fmt::format("{}", *value);
        // A TOML number without point or exponent would be an integer.
        return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
      },
      [](std::string* value) { return toml_string(*value); },
      [](const choice& slot) { return toml_string(*slot.value); },
      [](const path_slot& slot) { return toml_string(slot.path->string()); },
      [](dtype* value) { return toml_string(to_string(*value)); },
      [](std::optional<dtype>* value) { return toml_string(*value ? to_string(**value) : "auto"); },
      [](log::level* value) { return toml_string(levels[static_cast<std::size_t>(*value)]); },
      [](std::vector<std::string>* values) {
        std::string text;
        for (const auto& value : *values)
          text += (text.empty() ? "" : ", ") + toml_string(value);
        return "[" + text + "]";
      },
      [](std::vector<range>* ranges) {
        std::string text;
        for (const auto& part : *ranges)
          text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", part.begin, part.end);
        return "[" + text + "]";
      }},
    key.slot);
}

} // namespace troupe
