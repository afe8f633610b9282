#pragma once
// The source of a template as tokens: text between the tags, and what stands inside of them.

#include "config/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute::chat {

/// From 1; columns count bytes. Line ends are "\n", whatever the file has.
struct position {
  std::uint32_t line = 1, column = 1;
};

enum class token_kind : std::uint8_t {
  text,           ///< Between tags, white space already cut.
  block_begin,    ///< {%
  block_end,      ///< %}
  variable_begin, ///< {{
  variable_end,   ///< }}
  name,
  string, ///< Its characters, escapes replaced.
  integer,
  real,
  sign, ///< An operator or a bracket.
  end,
};

struct token {
  token_kind kind = token_kind::end;
  std::string text;
  position at;
};

/// Cuts with trim_blocks and lstrip_blocks, as transformers has Jinja do: the line end after a
/// block goes, and so do the blanks before a block that starts a line; "-" and "+" in tags have
/// their meanings; one line end at the end of the source goes. The last token is `end`.
/// invalid_model: text that is no token, or a tag that never ends; says "line L, column C: ...".
result<std::vector<token>> cut_tokens(std::string_view source);

/// "line 3, column 14: sentence".
error error_at(position where, std::string_view sentence, errc code = errc::invalid_model);

} // namespace troupe::compute::chat
