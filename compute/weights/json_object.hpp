#pragma once
// A JSON file as a reader of settings sees it: keys with a type that is wanted. The first thing
// that is wrong is remembered and everything after it gives fallbacks, so that a reader asks for
// all it needs in plain lines and looks at failure() once.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::compute {

/// Copies share the parsed text and the remembered failure; so do the sections of an object. A key
/// whose value is null counts as absent.
class json_object {
public:
  /// Fails with not_found, io_error or invalid_model; text that is no JSON object is shown.
  static result<json_object> read(const std::filesystem::path& file);

  /// `origin` names the text in messages.
  static result<json_object> parse(std::string_view text, std::string origin);

  bool has(std::string_view key) const;

  /// Whether the key is there, be it with a null.
  bool mentions(std::string_view key) const;

  /// A positive integer below 2^48.
  std::size_t size(std::string_view key) const;
  std::size_t size_or(std::string_view key, std::size_t fallback) const;

  /// An integer that may be 0, below 2^48.
  std::size_t count_or(std::string_view key, std::size_t fallback) const;

  /// A finite number.
  double number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;

  bool flag_or(std::string_view key, bool fallback) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;

  /// Texts of a list; empty when absent.
  std::vector<std::string> texts(std::string_view key) const;

  /// One token id or a list of them; empty when absent.
  std::vector<token_id> ids(std::string_view key) const;

  /// The object under `key`; an empty one when absent.
  json_object section(std::string_view key) const;

  /// All keys whose value is not null.
  std::vector<std::string> keys() const;

  /// Key and text of every entry whose value is a text.
  std::vector<std::pair<std::string, std::string>> text_entries() const;

  /// Remembers "<file>: '<key>' <sentence>" if nothing was wrong before.
  void fail(std::string_view key, std::string_view sentence, errc code = errc::invalid_model) const;

  const std::optional<error>& failure() const;

private:
  struct document;
  json_object(std::shared_ptr<document> whole, const void* node, std::string prefix);

  const void* find(std::string_view key) const;

  std::shared_ptr<document> whole_;
  const void* node_; // nlohmann::json inside of whole_, or nothing: an absent section
  std::string prefix_;
};

} // namespace troupe::compute
