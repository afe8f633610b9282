#pragma once
// Values as text: as Jinja prints them, and as JSON.

#include "compute/chat/value.hpp"
#include "config/result.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe::compute::chat {

/// Values nest at most this deep, in JSON and in what a template makes.
inline constexpr std::size_t most_nested = 128;

/// What `{{ what }}` prints: Python's str(). Stops, cut, soon after `most_bytes`, which is how a
/// caller sees that it is too long.
std::string to_text(const value& what, std::size_t most_bytes);

/// The arguments of the filter tojson, which are those of Python's json.dumps.
struct json_style {
  std::optional<std::string> indent; ///< One step of it; without one all stands on one line.
  std::optional<std::string> item_separator, key_separator;
  bool ensure_ascii = false, sort_keys = false;
};

/// As Python's json.dumps writes it; cut like to_text. `unwritable` names the type of a value that
/// JSON does not have (undefined, a macro), if there is one.
std::string to_json(const value& what,
                    const json_style& style,
                    std::size_t most_bytes,
                    std::string_view& unwritable);

/// Whole numbers outside of 64 bits become floats. invalid_argument: it is not JSON, is not UTF-8
/// or is nested more than most_nested deep; the message says where.
result<value> parse_json(std::string_view text);

/// Python's repr() of a float: the shortest that reads back as the same.
std::string to_text(double number);

} // namespace troupe::compute::chat
