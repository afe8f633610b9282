#pragma once
// A TOML text as a tree of plain values, each with the place that it was read from. This is the
// light side of toml11: no file but toml_reader.cpp sees the library.

#include "config/result.hpp"
#include "config/source_mark.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

struct toml_value {
  struct member;
  using array = std::vector<toml_value>;
  using table = std::vector<member>; ///< In the order of the file.

  /// A date or a time: TOML knows them, no setting of ours is one.
  struct date {};

  std::variant<bool, std::int64_t, double, std::string, date, array, table> content;
  source_mark mark; ///< Of a table: its header.

  /// nullptr unless this is a table that has the key.
  const toml_value* find(std::string_view key) const;
  toml_value* find(std::string_view key);

  /// "an integer", "a list", ...
  std::string_view kind() const;
};

struct toml_value::member {
  std::string key;
  source_mark key_mark;
  toml_value value;
};

/// The table that `text` holds. Needs a text that went through config/toml_screen.hpp.
/// Error: invalid_config with file, line and caret. Integers that do not fit 64 bits are errors.
result<toml_value> read_toml(std::string_view text, std::string_view name);

/// One value as it stands behind "key=" on a command line. `option` is the whole option, in which
/// the value starts at byte `offset`; marks point into it. A value that is not TOML is a string, so
/// that no quotes have to get through a shell.
toml_value read_toml_option(std::string_view option, std::size_t offset);

} // namespace troupe
