#pragma once
// What happens to a text before it is cut: the "normalizer" of a tokenizer.json.

#include "compute/tokenizer/split_pattern.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::compute {

struct unicode_form {
  enum class kind : std::uint8_t { nfc, nfd, nfkc, nfkd } form;
};

struct lowercase {};

/// White space at the ends.
struct strip_whitespace {
  bool left, right;
};

struct replace_matches {
  split_pattern pattern;
  std::string content;
};

/// In front of each text that is not empty.
struct prepend_text {
  std::string text;
};

using normalizer_step =
  std::variant<unicode_form, lowercase, strip_whitespace, replace_matches, prepend_text>;

/// Steps in order; none: the text as it is. Immutable; any thread.
class normalizer {
public:
  void add(normalizer_step step) { steps_.push_back(std::move(step)); }

  bool empty() const noexcept { return steps_.empty(); }

  /// Valid UTF-8 to valid UTF-8.
  result<std::string> apply(std::string text) const;

private:
  std::vector<normalizer_step> steps_;
};

} // namespace troupe::compute
