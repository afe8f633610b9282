#pragma once
// How the texts of single tokens make the text of a sequence.

#include "compute/tokenizer/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::compute {

/// Until when a token counts as the first, whose text differs (its leading space goes).
enum class first_token_rule : std::uint8_t {
  same,               ///< The first token is like all others.
  one_token,          ///< HF: the first token that is not skipped.
  until_text,         ///< sentencepiece with remove_extra_whitespaces: until there is text.
  until_text_or_mark, ///< sentencepiece: ... or until one space mark was taken away.
};

/// What happens with the text of all tokens once they are joined.
struct joining_rules {
  std::string separator; ///< Between tokens; HF without any decoder joins with a space.
  /// Up to `strip_count` of this character go from the start of the text.
  std::string strip_content;
  std::size_t strip_count = 0;
  first_token_rule first = first_token_rule::same;
  utf8::invalid_bytes invalid = utf8::invalid_bytes::one_per_part;
};

} // namespace troupe::compute
