#include "compute/tokenizer/model_file.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::compute {

namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{512} << 20;
constexpr std::size_t most_nested = 64;

std::string list_of(std::initializer_list<std::string_view> names) {
  std::string list;
  for (auto name : names)
    list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

/// How deep arrays and objects are nested. Readers and error messages recurse as deep.
std::size_t nesting_of(std::string_view json) {
  std::size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    char byte = json[at];
    if (in_string) {
      at += byte == '\\'; // the next is no quote
      in_string = byte != '"';
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '[' || byte == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((byte == ']' || byte == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

} // namespace

result<std::string> read_bytes(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code))
    return error{errc::not_found, fmt::format("{} does not exist", file.string())};
  auto bytes = std::filesystem::file_size(file, code);
  if (code)
    return error{errc::io_error, fmt::format("{}: {}", file.string(), code.message())};
  if (bytes > most_bytes)
    return error{
      errc::invalid_model,
      fmt::format("{} has {} bytes; at most {} are read", file.string(), bytes, most_bytes)};
  std::string content(bytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(content.data(), static_cast<std::streamsize>(bytes)))
    return error{errc::io_error, fmt::format("{} cannot be read", file.string())};
  return content;
}

result<nlohmann::json> read_json(const std::filesystem::path& file) {
  auto content = read_bytes(file);
  if (!content)
    return content.error();
  if (auto depth = nesting_of(*content); depth > most_nested)
    return error{
      errc::invalid_model,
      fmt::format("{} is nested {} deep; at most {} are read", file.string(), depth, most_nested)};
  try {
    return nlohmann::json::parse(*content);
  } catch (const std::exception& failure) { // the message has line and column
    return error{
      errc::invalid_model,
      fmt::format("{} ({} bytes) is not JSON: {}", file.string(), content->size(), failure.what())};
  }
}

json_view json_view::operator[](const char* key) const {
  const nlohmann::json* member = nullptr;
  if (is_object())
    if (auto found = value_->find(key); found != value_->end())
      member = &*found;
  return {member, path_.empty() ? key : path_ + "." + key, *trouble_};
}

json_view json_view::at(std::size_t index) const {
  return {&(*value_)[index], fmt::format("{}[{}]", path_, index), *trouble_};
}

std::size_t json_view::size() const {
  if (empty())
    return 0;
  if (!value_->is_array()) {
    wrong_type("an array");
    return 0;
  }
  return value_->size();
}

std::string json_view::text(std::string_view fallback) const {
  if (empty())
    return std::string(fallback);
  if (!value_->is_string()) {
    wrong_type("a string");
    return std::string(fallback);
  }
  return value_->get<std::string>();
}

std::string json_view::required_text() const {
  if (empty())
    wrong_type("a string");
  return text();
}

bool json_view::flag(bool fallback) const {
  if (empty())
    return fallback;
  if (!value_->is_boolean()) {
    wrong_type("true or false");
    return fallback;
  }
  return value_->get<bool>();
}

std::uint64_t json_view::integer(std::uint64_t fallback) const {
  if (empty())
    return fallback;
  if (!value_->is_number_unsigned()) {
    wrong_type("a whole number of at least 0");
    return fallback;
  }
  return value_->get<std::uint64_t>();
}

void json_view::only(std::initializer_list<std::string_view> keys) const {
  if (!is_object()) {
    wrong_type("an object");
    return;
  }
  for (const auto& [key, value] : value_->items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      say(errc::unsupported,
          fmt::format("key \"{}\" is not known; known are: {}", key, list_of(keys)));
}

std::size_t json_view::one_of(std::initializer_list<std::string_view> names) const {
  std::string found = required_text();
  auto at = std::find(names.begin(), names.end(), found);
  if (at == names.end()) {
    say(errc::unsupported,
        fmt::format("\"{}\" is not supported; supported are: {}", found, list_of(names)));
    return 0;
  }
  return static_cast<std::size_t>(at - names.begin());
}

void json_view::wrong_type(std::string_view wanted) const {
  std::string found = "missing";
  if (value_ != nullptr) {
    found = value_->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (found.size() > 60)
      found = found.substr(0, 60) + " ...";
  }
  say(errc::invalid_model, fmt::format("found {}, but it must be {}", found, wanted));
}

} // namespace troupe::compute
