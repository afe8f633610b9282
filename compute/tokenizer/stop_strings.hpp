#pragma once
// Stop strings over a stream of text: what may be sent, and when to stop.

#include "config/result.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// Watches the text of one answer for the strings that end it. No byte of a stop string that
/// matched, and nothing behind it, is ever handed out; held back is only the longest suffix that
/// may still become a stop string, so text without one is delayed by no more than that.
///
/// What is found depends on the text alone, never on how it was cut into chunks: the match that
/// ends first wins, and of those that end together the longest (a stop string inside another).
/// Each stop string runs its own Knuth-Morris-Pratt automaton (SIAM J. Comput. 6(2), 1977).
/// One thread at a time.
class stop_strings {
public:
  /// None given: everything passes at once. An empty string is an invalid_argument.
  static result<stop_strings> make(std::vector<std::string> stops);

  struct verdict {
    std::string text;     ///< Safe to send.
    bool stopped = false; ///< A stop string was met; all later pushes give nothing.
  };

  verdict push(std::string_view text);

  /// The text that was held back: call at the end of an answer that no stop string ended.
  std::string flush();

  bool stopped() const noexcept { return matched_.has_value(); }

  /// Which of the given strings ended the answer.
  std::optional<std::size_t> matched() const noexcept { return matched_; }

private:
  struct automaton {
    std::string pattern;
    std::vector<std::size_t> fallback; ///< Per length: the longest proper border of that prefix.
    std::size_t length = 0;            ///< Of the pattern's prefix that the text now ends with.

    explicit automaton(std::string text);
    bool step(char next);
  };

  stop_strings() = default;

  std::vector<automaton> automata_;
  std::string held_;
  std::optional<std::size_t> matched_;
};

} // namespace troupe::compute
