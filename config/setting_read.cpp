#include "config/nearest.hpp"
#include "config/setting.hpp"
#include "config/setting_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace troupe {

using namespace setting_words;

namespace {

constexpr double most_bytes = 1ull << 60;

bool inside(double value, const bounds& allowed) {
  return std::isfinite(value) && value <= allowed.most
         && (allowed.above ? value > allowed.least : value >= allowed.least);
}

// A setting under the name that messages use.
struct subject {
  const setting& key;
  std::string_view full_name;
};

error wrong(const subject& of, const toml_value& value, std::string_view found) {
  return {errc::invalid_config,
          point(value.mark,
                fmt::format("{} cannot be {}", of.full_name, found),
                "must be " + accepted(of.key))};
}

error wrong_kind(const subject& of, const toml_value& value) {
  return wrong(of, value, value.kind());
}

// A word that must be one of a few; npos when it is not.
result<std::size_t>
read_word(const subject& of, const toml_value& value, std::span<const std::string_view> known) {
  const auto* word = std::get_if<std::string>(&value.content);
  if (!word)
    return wrong_kind(of, value);
  const auto found = std::find(known.begin(), known.end(), *word);
  if (found != known.end())
    return static_cast<std::size_t>(found - known.begin());
  auto what = toml_string(*word);
  if (const auto guess = nearest(*word, known); !guess.empty())
    what += fmt::format("; did you mean \"{}\"?", guess);
  return wrong(of, value, what);
}

// "512MiB", "1.5 GB", "1048576". nullopt when it is not a size.
std::optional<double> parse_size(std::string_view text) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc{})
    return std::nullopt;
  auto rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  while (rest.starts_with(' '))
    rest.remove_prefix(1);
  if (rest.empty())
    return number;
  for (const auto& [name, bytes] : units)
    if (rest == name)
      return number * static_cast<double>(bytes);
  return std::nullopt;
}

result<void> read_bytes(const subject& of, const toml_value& value, std::uint64_t& out) {
  double bytes = 0;
  if (const auto* number = std::get_if<std::int64_t>(&value.content)) {
    bytes = static_cast<double>(*number);
    out = static_cast<std::uint64_t>(*number);
  } else if (const auto* text = std::get_if<std::string>(&value.content)) {
    if (*text == "auto") {
      out = 0;
      return {};
    }
    const auto parsed = parse_size(*text);
    if (!parsed)
      return wrong(of, value, toml_string(*text));
    bytes = *parsed;
    out = bytes >= 1 && bytes <= most_bytes ? static_cast<std::uint64_t>(bytes) : 0;
  } else {
    return wrong_kind(of, value);
  }
  if (!std::isfinite(bytes) || bytes < 1 || bytes > most_bytes)
    return wrong(of, value, fmt::format("{} bytes", bytes));
  return {};
}

result<void> read_path(const subject& of,
                       const toml_value& value,
                       const std::filesystem::path& folder,
                       const path_slot& slot) {
  const auto* text = std::get_if<std::string>(&value.content);
  if (!text)
    return wrong_kind(of, value);
  if (text->empty())
    return wrong(of, value, "an empty string");
  if (text->find('\0') != std::string::npos)
    return wrong(of, value, "a string with a NUL character");
  if (text->starts_with("~"))
    return wrong(
      of,
      value,
      fmt::format("{}: \"~\" is not expanded here, write the whole path", toml_string(*text)));
  if (!slot.kept.empty() && *text == slot.kept)
    *slot.path = slot.kept;
  else
    *slot.path = (folder / *text).lexically_normal();
  return {};
}

result<void> read_texts(const subject& of, const toml_value& value, std::vector<std::string>& out) {
  const auto* elements = std::get_if<toml_value::array>(&value.content);
  if (!elements)
    return wrong_kind(of, value);
  std::vector<std::string> texts;
  for (const auto& element : *elements) {
    const auto* text = std::get_if<std::string>(&element.content);
    if (!text || text->empty())
      return wrong(of,
                   element,
                   fmt::format("a list with {} in it", text ? "an empty string" : element.kind()));
    if (std::find(texts.begin(), texts.end(), *text) != texts.end())
      return wrong(of, element, fmt::format("a list with {} twice", toml_string(*text)));
    texts.push_back(*text);
  }
  out = std::move(texts);
  return {};
}

// [begin, end) of one stage; it must start where the one before it ended.
result<range> read_range(const subject& of,
                         const toml_value& value,
                         std::size_t stage,
                         std::size_t expected_begin) {
  const auto* pair = std::get_if<toml_value::array>(&value.content);
  const auto* begin =
    pair && pair->size() == 2 ? std::get_if<std::int64_t>(&(*pair)[0].content) : nullptr;
  const auto* end = begin ? std::get_if<std::int64_t>(&(*pair)[1].content) : nullptr;
  if (!end)
    return wrong(of, value, fmt::format("a list whose stage {} is not two integers", stage));
  if (*begin != static_cast<std::int64_t>(expected_begin))
    return error{errc::invalid_config,
                 point((*pair)[0].mark,
                       fmt::format("stage {} begins at layer {}, but {} layer {}",
                                   stage,
                                   *begin,
                                   stage == 0 ? "the first stage begins at"
                                              : "the stage before it ends before",
                                   expected_begin),
                       fmt::format("{} would work", expected_begin))};
  if (*end <= *begin)
    return error{
      errc::invalid_config,
      point(value.mark,
            fmt::format("stage {} has no layers: [{}, {}] holds none", stage, *begin, *end),
            "the end is the first layer that is not in it")};
  return range{static_cast<std::size_t>(*begin), static_cast<std::size_t>(*end)};
}

result<void> read_ranges(const subject& of, const toml_value& value, std::vector<range>& out) {
  const auto* elements = std::get_if<toml_value::array>(&value.content);
  if (!elements)
    return wrong_kind(of, value);
  std::vector<range> ranges;
  for (const auto& element : *elements) {
    auto next = read_range(of, element, ranges.size(), ranges.empty() ? 0 : ranges.back().end);
    if (!next)
      return next.error();
    ranges.push_back(*next);
  }
  out = std::move(ranges);
  return {};
}

// Reads one value into the slot of its type.
struct reader {
  const subject& of;
  const toml_value& value;
  const std::filesystem::path& folder;

  result<void> operator()(bool* out) const {
    const auto* found = std::get_if<bool>(&value.content);
    if (!found)
      return wrong_kind(of, value);
    *out = *found;
    return {};
  }

  result<void> operator()(std::uint64_t* out) const {
    const auto* found = std::get_if<std::int64_t>(&value.content);
    if (!found)
      return wrong_kind(of, value);
    if (!inside(static_cast<double>(*found), of.key.allowed))
      return wrong(of, value, fmt::format("{}", *found));
    *out = static_cast<std::uint64_t>(*found);
    return {};
  }

  result<void> operator()(double* out) const {
    double number = 0;
    if (const auto* real = std::get_if<double>(&value.content))
      number = *real;
    else if (const auto* integer = std::get_if<std::int64_t>(&value.content))
      number = static_cast<double>(*integer);
    else
      return wrong_kind(of, value);
    if (!inside(number, of.key.allowed))
      return wrong(of, value, fmt::format("{}", number));
    *out = number;
    return {};
  }

  result<void> operator()(std::string* out) const {
    const auto* found = std::get_if<std::string>(&value.content);
    if (!found)
      return wrong_kind(of, value);
    if (found->find('\0') != std::string::npos)
      return wrong(of, value, "a string with a NUL character");
    *out = *found;
    return {};
  }

  result<void> operator()(const choice& slot) const {
    auto index = read_word(of, value, slot.known);
    if (!index)
      return index.error();
    *slot.value = slot.known[*index];
    return {};
  }

  result<void> operator()(dtype* out) const {
    auto index = read_word(of, value, dtype_names);
    if (!index)
      return index.error();
    *out = dtypes[*index];
    return {};
  }

  result<void> operator()(std::optional<dtype>* out) const {
    auto index = read_word(of, value, held_dtype_names);
    if (!index)
      return index.error();
    *out = *index == 0 ? std::nullopt : std::optional{dtypes[*index - 1]};
    return {};
  }

  result<void> operator()(log::level* out) const {
    auto index = read_word(of, value, levels);
    if (!index)
      return index.error();
    check(log::parse(levels[*index], *out), "the log knows its own levels");
    return {};
  }

  result<void> operator()(const byte_count& slot) const {
    return read_bytes(of, value, *slot.bytes);
  }

  result<void> operator()(const path_slot& slot) const {
    return read_path(of, value, folder, slot);
  }

  result<void> operator()(std::vector<std::string>* out) const {
    return read_texts(of, value, *out);
  }

  result<void> operator()(std::vector<range>* out) const { return read_ranges(of, value, *out); }
};

} // namespace

result<void> read_setting(const setting& key,
                          std::string_view full_name,
                          const toml_value& value,
                          const std::filesystem::path& folder) {
  const subject of{key, full_name};
  return std::visit(reader{of, value, folder}, key.slot);
}

} // namespace troupe
