#pragma once
// Text while it is made: token by token, whole characters only.

#include "compute/tokenizer/utf8.hpp"
#include "config/ids.hpp"

#include <span>
#include <string>

namespace troupe::compute {

class tokenizer;

/// Decodes one sequence token by token. The chunks joined, flush() included, are what decode()
/// gives for the whole sequence; a character that comes in several tokens is handed out with its
/// last. At most 3 bytes are held back: what can no longer become a character is U+FFFD at once.
///
/// With a prompt, the text is that of the answer alone: decode(prompt + answer) without its
/// beginning decode(prompt). So the first token of an answer keeps its leading space where the
/// whole text shows one, and loses it only where it is the very first of the text. A character that
/// the prompt begins and the answer completes belongs to the answer.
///
/// The tokenizer outlives the stream. One thread at a time.
class text_stream {
public:
  text_stream(const tokenizer& vocabulary, bool skip_special);
  text_stream(const tokenizer& vocabulary, bool skip_special, std::span<const token_id> prompt);

  /// The text that became certain; empty for a special token that is skipped, for a hole in the
  /// vocabulary and for an id beyond it.
  std::string push(token_id token);

  /// The sequence is over: an incomplete character becomes U+FFFD.
  std::string flush();

private:
  void append(token_id token, std::string& out);
  void strip_start(std::string& text);

  const tokenizer* tokenizer_;
  bool skip_special_;
  bool first_ = true;      ///< The next token is the first, by the decoder's rule.
  bool separated_ = false; ///< A separator goes before the next token.
  std::size_t strip_left_; ///< So many characters may still go from the start.
  utf8::assembler characters_;
};

} // namespace troupe::compute
