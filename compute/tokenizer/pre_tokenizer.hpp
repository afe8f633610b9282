#pragma once
// How a text is cut into words before the model sees it: the "pre_tokenizer" of a tokenizer.json.

#include "compute/tokenizer/split_pattern.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::compute {

/// What a cut does with the parts that the pattern matched.
enum class split_behavior : std::uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous,
};

struct split_by_pattern {
  split_pattern pattern;
  split_behavior behavior = split_behavior::isolated;
  bool invert = false;
};

/// Single characters of a class as matches.
struct split_by_class {
  enum class kind : std::uint8_t { digits, punctuation, whitespace } of;
  split_behavior behavior = split_behavior::isolated;
};

/// Runs of word characters and runs of others are words, white space goes: \w+|[^\w\s]+.
struct split_words {};

/// Spells bytes as characters, after cutting if a pattern is there.
struct byte_level_words {
  bool add_prefix_space = false;
  std::vector<split_pattern> pattern; ///< GPT-2's, or none with use_regex = false.
};

/// Spaces become `mark`, which starts each word.
struct metaspace_words {
  enum class prepend : std::uint8_t { always, first, never };
  std::string mark;
  prepend scheme = prepend::always;
  bool split = true;
};

using pre_tokenizer_step =
  std::variant<split_by_pattern, split_by_class, split_words, byte_level_words, metaspace_words>;

/// One word, and whether it starts where the whole text starts.
struct word {
  std::string text;
  bool at_start = false;
};

/// Steps in order; none: the text is one word. Immutable; any thread.
class pre_tokenizer {
public:
  void add(pre_tokenizer_step step) { steps_.push_back(std::move(step)); }

  /// Valid UTF-8 to words of valid UTF-8, none of them empty.
  result<std::vector<word>> apply(word text) const;

private:
  std::vector<pre_tokenizer_step> steps_;
};

/// GPT-2's pattern, which ByteLevel with use_regex means.
result<split_pattern> gpt2_pattern();

} // namespace troupe::compute
