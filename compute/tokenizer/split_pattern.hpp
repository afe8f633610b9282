#pragma once
// Where a pattern matches in a text: the regular expressions and literals of a tokenizer.json.

#include "config/result.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// A part of a text, in bytes: [begin, end), and whether the pattern matched it.
struct text_part {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool matched = false;
};

/// A compiled pattern. Immutable; any number of threads may match at once.
///
/// Hugging Face compiles with Oniguruma, Troupe with PCRE2 and its JIT, which cuts the same; the
/// pattern is rewritten where the two languages differ (U+180E is no space in Oniguruma), and a
/// construct whose meaning differs otherwise is refused.
class split_pattern {
public:
  /// invalid_model, with the place in the pattern: not a pattern, or one that is not supported.
  static result<split_pattern> regex(std::string_view oniguruma);
  static result<split_pattern> literal(std::string_view text);

  /// Cuts valid UTF-8 into matched parts and what lies between, in order, without a gap; a match
  /// may be empty. compute_error: the matcher gave up (its limits on backtracking).
  result<std::vector<text_part>> cut(std::string_view text) const;

  /// The text with `content` in place of each match. Errors: as cut().
  result<std::string> replace(std::string_view text, std::string_view content) const;

private:
  struct program;

  std::shared_ptr<const program> program_; ///< Of a regex.
  std::string literal_;                    ///< Of a literal.
};

/// The pattern in PCRE2's language; exposed for tests.
result<std::string> pcre2_spelling(std::string_view oniguruma);

} // namespace troupe::compute
