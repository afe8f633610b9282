#pragma once
// What is checked about a TOML text before it meets the parser: size, encoding, and how deep and
// how long its parts are. toml11 recurses for each bracket and each dot of a key (100,000 of them
// overflow the stack) and its time grows with the square of a line's length.

#include "config/result.hpp"

#include <cstddef>
#include <string_view>

namespace troupe {

struct toml_bounds {
  std::size_t text_bytes = 256 * 1024; ///< A cluster of a thousand nodes needs half of it.
  std::size_t line_bytes = 4096;
  std::size_t depth = 16;     ///< Of brackets, and parts of a dotted key.
  std::size_t values = 16384; ///< Keys, elements and tables; a node needs a dozen.
};

/// The text without a byte order mark; a view into `text`. Error: invalid_config with file, line
/// and column for text that is too large, binary, not UTF-8, or too deeply nested.
result<std::string_view>
screen_toml(std::string_view text, std::string_view name, const toml_bounds& bounds = {});

} // namespace troupe
