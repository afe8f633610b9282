#pragma once
// How the pieces of tokens become text: the "decoder" of a tokenizer.json, in a form that gives the
// same text token by token as for a whole sequence.

#include "compute/tokenizer/joining.hpp"
#include "compute/tokenizer/split_pattern.hpp"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace troupe::compute {

struct decode_replace {
  split_pattern pattern;
  std::string content;
};

/// "<0x0A>" is that byte.
struct decode_byte_fallback {};

/// Characters spell bytes (compute/tokenizer/byte_level.hpp).
struct decode_byte_level {};

/// Up to so many `content` characters off the ends of each token.
struct decode_strip {
  std::string content;
  std::size_t start = 0, stop = 0;
};

/// The mark is a space; in the first token all marks go (HF), if `drop_in_first`.
struct decode_metaspace {
  std::string mark;
  bool drop_in_first = false;
};

/// The mark is a space; one at the start of a first token goes (sentencepiece).
struct decode_sentencepiece {
  std::string mark;
};

using decoder_step = std::variant<decode_replace,
                                  decode_byte_fallback,
                                  decode_byte_level,
                                  decode_strip,
                                  decode_metaspace,
                                  decode_sentencepiece>;

/// Steps on each token, then rules for joining. Immutable after loading; any thread.
class decoder {
public:
  void add(decoder_step step) { steps_.push_back(std::move(step)); }

  joining_rules& rules() noexcept { return rules_; }

  const joining_rules& rules() const noexcept { return rules_; }

  /// The bytes of one token; they need not be whole characters.
  result<std::string> bytes_of(std::string piece, bool first) const;

private:
  std::vector<decoder_step> steps_;
  joining_rules rules_;
};

} // namespace troupe::compute
