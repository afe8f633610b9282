#pragma once
// Typed, checked reading of the JSON files of a model folder. Heavy: for .cpp files alone.

#include "config/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::compute {

/// Reads and parses; not_found, io_error or invalid_model, with the file and the place in it.
result<nlohmann::json> read_json(const std::filesystem::path& file);

/// Whole file as bytes; not_found or io_error. Files of more than 512 MiB are refused.
result<std::string> read_bytes(const std::filesystem::path& file);

/// The first problem that a reader meets; later ones are consequences.
class problem {
public:
  explicit problem(std::filesystem::path file) : file_(std::move(file)) {}

  void say(errc code, std::string_view where, std::string_view what) {
    if (!first_)
      first_ = error{code, fmt::format("{}: {}: {}", file_.string(), where, what)};
  }

  /// Of a part that knows no file.
  void say(std::string_view where, const error& cause) { say(cause.code, where, cause.what); }

  explicit operator bool() const noexcept { return first_.has_value(); }

  const error& first() const { return *first_; }

private:
  std::filesystem::path file_;
  std::optional<error> first_;
};

/// One value of the file and its path in it. A wrong type is said to the problem and read as the
/// fallback, so a reader goes on without a check at each value and looks at the problem at its end.
class json_view {
public:
  json_view(const nlohmann::json* value, std::string path, problem& trouble)
    : value_(value), path_(std::move(path)), trouble_(&trouble) {}

  /// Missing or null.
  bool empty() const { return value_ == nullptr || value_->is_null(); }

  bool is_object() const { return value_ != nullptr && value_->is_object(); }

  bool is_string() const { return value_ != nullptr && value_->is_string(); }

  const nlohmann::json* raw() const { return value_; }

  const std::string& path() const { return path_; }

  problem& trouble() const { return *trouble_; }

  /// A member; empty if there is none.
  json_view operator[](const char* key) const;
  /// An element of what is known to be an array.
  json_view at(std::size_t index) const;

  /// Elements of an array; 0 for an empty value.
  std::size_t size() const;

  std::string text(std::string_view fallback = "") const;
  std::string required_text() const;
  bool flag(bool fallback) const;
  std::uint64_t integer(std::uint64_t fallback) const;
  /// Expects an object with no keys but these.
  void only(std::initializer_list<std::string_view> keys) const;
  /// Position of the text in `names`, said to be unsupported otherwise.
  std::size_t one_of(std::initializer_list<std::string_view> names) const;

  void say(errc code, std::string_view what) const { trouble_->say(code, path_, what); }

  void wrong_type(std::string_view wanted) const;

private:
  const nlohmann::json* value_;
  std::string path_;
  problem* trouble_;
};

} // namespace troupe::compute
