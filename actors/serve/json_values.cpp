#include "actors/serve/json_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::actors::serve {

using nlohmann::json;

namespace {

constexpr std::size_t longest_shown = 80;

// Before anything is built from it: brackets outside of strings.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

std::string shown(const json& value) {
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > longest_shown)
    text = text.substr(0, longest_shown) + "...";
  return text;
}

} // namespace

std::string take(const json& from, std::string& into) {
  if (!from.is_string())
    return "a text";
  into = from.get<std::string>();
  return {};
}

std::string take(const json& from, bool& into) {
  if (!from.is_boolean())
    return "true or false";
  into = from.get<bool>();
  return {};
}

// The library's own get<>() would turn -1 into a large number and 1.5 into 1.
std::string
take_whole(const json& from, std::uint64_t& into, std::uint64_t least, std::uint64_t most) {
  if (!from.is_number_unsigned() || from.get<std::uint64_t>() < least
      || from.get<std::uint64_t>() > most)
    return fmt::format("a whole number from {} to {}", least, most);
  into = from.get<std::uint64_t>();
  return {};
}

std::string
take_whole(const json& from, std::uint32_t& into, std::uint64_t least, std::uint64_t most) {
  std::uint64_t wide = 0;
  auto right = take_whole(from, wide, least, most);
  if (right.empty())
    into = static_cast<std::uint32_t>(wide);
  return right;
}

std::string take_real(const json& from, float& into, double least, double most, bool above) {
  const auto value = from.is_number() ? from.get<double>() : std::nan("");
  if (!(value >= least && value <= most) || (above && value == least))
    return fmt::format("a number {} {} to {}", above ? "above" : "from", least, most);
  into = static_cast<float>(value);
  return {};
}

bool take_ids(const json& from, std::vector<token_id>& into) {
  if (!from.is_array())
    return false;
  for (const auto& one : from)
    if (!take_whole(one, into.emplace_back(), 0, std::numeric_limits<token_id>::max()).empty())
      return false;
  return !into.empty();
}

api_error wrong_value(const std::string& name, const json& value, const std::string& right) {
  return {
    400, fmt::format("{} is {}; allowed is {}", name, shown(value), right), name, "invalid_value"};
}

std::optional<api_error> parse_body(std::string_view body, const api_rules& rules, json& into) {
  const auto deep = depth_of(body);
  if (deep > rules.nesting)
    return api_error{400,
                     fmt::format("the body nests {} levels deep; allowed are {} (serve.nesting)",
                                 deep,
                                 rules.nesting),
                     {},
                     "invalid_json"};
  try {
    into = json::parse(body);
  } catch (const json::exception& mistake) {
    return api_error{
      400, fmt::format("the body is not JSON in UTF-8: {}", mistake.what()), {}, "invalid_json"};
  }
  if (!into.is_object())
    return api_error{400, "the body is not a JSON object", {}, "invalid_json"};
  return std::nullopt;
}

std::optional<api_error> missing_field(const std::string& name) {
  return api_error{400, fmt::format("{} is missing", name), name, "missing_field"};
}

} // namespace troupe::actors::serve
