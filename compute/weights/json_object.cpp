#include "compute/weights/json_object.hpp"

#include "compute/weights/mapped_file.hpp"
#include "compute/weights/printable.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace troupe::compute {

using nlohmann::json;

namespace {

/// A parser that refuses deep nesting before the text can fill memory with brackets.
result<json> parse_object(std::string_view text, const std::string& origin) {
  constexpr int deepest = 64;
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > deepest;
    return !too_deep;
  };
  json parsed;
  try {
    parsed = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& failure) {
    return error{errc::invalid_model,
                 fmt::format("{}: not JSON: {}; first bytes '{}'",
                             origin,
                             printable(failure.what(), 200),
                             printable(text.substr(0, 32)))};
  }
  if (too_deep)
    return error{errc::invalid_model, fmt::format("{}: nested deeper than {}", origin, deepest)};
  if (!parsed.is_object())
    return error{errc::invalid_model, fmt::format("{}: not a JSON object", origin)};
  return parsed;
}

const json& as_json(const void* node) {
  return *static_cast<const json*>(node);
}

std::string shown(const void* node) {
  return printable(as_json(node).dump(-1, ' ', true, json::error_handler_t::replace), 60);
}

} // namespace

struct json_object::document {
  std::string origin;
  json root;
  std::optional<error> failure;
};

json_object::json_object(std::shared_ptr<document> whole, const void* node, std::string prefix)
  : whole_(std::move(whole)), node_(node), prefix_(std::move(prefix)) {}

result<json_object> json_object::parse(std::string_view text, std::string origin) {
  auto parsed = parse_object(text, origin);
  if (!parsed)
    return parsed.error();
  auto whole = std::make_shared<document>();
  whole->origin = std::move(origin);
  whole->root = *std::move(parsed);
  const void* root = &whole->root;
  return json_object{std::move(whole), root, ""};
}

result<json_object> json_object::read(const std::filesystem::path& file) {
  auto mapped = mapped_file::open(file);
  if (!mapped)
    return mapped.error();
  const auto bytes = (*mapped)->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string());
}

const void* json_object::find(std::string_view key) const {
  if (node_ == nullptr)
    return nullptr;
  const auto& object = as_json(node_);
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool json_object::has(std::string_view key) const {
  return find(key) != nullptr;
}

bool json_object::mentions(std::string_view key) const {
  return node_ != nullptr && as_json(node_).contains(std::string(key));
}

void json_object::fail(std::string_view key, std::string_view sentence, errc code) const {
  if (!whole_->failure)
    whole_->failure =
      error{code, fmt::format("{}: '{}{}' {}", whole_->origin, prefix_, printable(key), sentence)};
}

const std::optional<error>& json_object::failure() const {
  return whole_->failure;
}

std::size_t json_object::size(std::string_view key) const {
  if (!has(key)) {
    fail(key, "is missing; a positive integer is needed");
    return 1;
  }
  return size_or(key, 1);
}

std::size_t json_object::size_or(std::string_view key, std::size_t fallback) const {
  const auto found = count_or(key, fallback);
  if (found == 0 && has(key) && !failure()) {
    fail(key, "is 0; a positive integer is needed");
    return 1;
  }
  return found;
}

std::size_t json_object::count_or(std::string_view key, std::size_t fallback) const {
  const auto* found = find(key);
  if (found == nullptr)
    return fallback;
  const auto& value = as_json(found);
  constexpr std::size_t limit = std::size_t{1} << 48;
  if (!value.is_number_unsigned() || value.get<std::size_t>() >= limit) {
    fail(key, fmt::format("is {}; a positive integer is needed", shown(found)));
    return 1;
  }
  return value.get<std::size_t>();
}

double json_object::number(std::string_view key) const {
  if (!has(key))
    fail(key, "is missing; a number is needed");
  return number_or(key, 1);
}

double json_object::number_or(std::string_view key, double fallback) const {
  const auto* found = find(key);
  if (found == nullptr)
    return fallback;
  const auto& value = as_json(found);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    fail(key, fmt::format("is {}; a number is needed", shown(found)));
    return 1;
  }
  return value.get<double>();
}

bool json_object::flag_or(std::string_view key, bool fallback) const {
  const auto* found = find(key);
  if (found == nullptr)
    return fallback;
  const auto& value = as_json(found);
  if (!value.is_boolean()) {
    fail(key, fmt::format("is {}; true or false is needed", shown(found)));
    return fallback;
  }
  return value.get<bool>();
}

std::string json_object::text_or(std::string_view key, std::string_view fallback) const {
  const auto* found = find(key);
  if (found == nullptr)
    return std::string(fallback);
  const auto& value = as_json(found);
  if (!value.is_string()) {
    fail(key, fmt::format("is {}; a text is needed", shown(found)));
    return std::string(fallback);
  }
  return value.get<std::string>();
}

std::vector<std::string> json_object::texts(std::string_view key) const {
  std::vector<std::string> list;
  const auto* found = find(key);
  if (found == nullptr)
    return list;
  const auto& value = as_json(found);
  if (!value.is_array())
    fail(key, fmt::format("is {}; a list of texts is needed", shown(found)));
  else
    for (const auto& item : value)
      if (item.is_string())
        list.push_back(item.get<std::string>());
      else
        fail(key, fmt::format("is {}; a list of texts is needed", shown(found)));
  return list;
}

std::vector<token_id> json_object::ids(std::string_view key) const {
  std::vector<token_id> list;
  const auto* found = find(key);
  if (found == nullptr)
    return list;
  const auto take = [&](const json& item) {
    if (item.is_number_unsigned()
        && item.get<std::size_t>() <= std::numeric_limits<token_id>::max())
      list.push_back(item.get<token_id>());
    else
      fail(key, fmt::format("is {}; a token id or a list of them is needed", shown(found)));
  };
  const auto& value = as_json(found);
  if (value.is_array())
    for (const auto& item : value)
      take(item);
  else
    take(value);
  return list;
}

json_object json_object::section(std::string_view key) const {
  const auto* found = find(key);
  if (found != nullptr && !as_json(found).is_object()) {
    fail(key, fmt::format("is {}; an object is needed", shown(found)));
    found = nullptr;
  }
  return json_object{whole_, found, prefix_ + std::string(key) + "."};
}

std::vector<std::string> json_object::keys() const {
  std::vector<std::string> list;
  if (node_ != nullptr)
    for (const auto& [key, value] : as_json(node_).items())
      if (!value.is_null())
        list.push_back(key);
  return list;
}

std::vector<std::pair<std::string, std::string>> json_object::text_entries() const {
  std::vector<std::pair<std::string, std::string>> list;
  if (node_ != nullptr)
    for (const auto& [key, value] : as_json(node_).items())
      if (value.is_string())
        list.emplace_back(key, value.get<std::string>());
  return list;
}

} // namespace troupe::compute
