#pragma once
// The probabilities of an answer's tokens, in the shapes of OpenAI's API.

#include "actors/messages/steps.hpp"
#include "compute/tokenizer/tokenizer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors::serve {

/// A token as clients see it: its bytes, and how likely it was.
struct likely_token {
  std::string bytes; ///< May be a part of a character.
  float logprob = 0; ///< Natural logarithm, of the model's own distribution.
};

struct token_likelihood {
  likely_token chosen;
  std::vector<likely_token> top; ///< Best first.
  std::size_t offset = 0;        ///< In the answer's text: characters before it.
};

/// Turns tokens into what is told of them; one an answer, which it follows token by token.
class likelihoods {
public:
  /// `words` outlives it.
  explicit likelihoods(const compute::tokenizer& words) : words_(&words) {}

  /// Nothing is told of special tokens, which are no text: the end of the answer is one.
  void add(token_id token,
           float logprob,
           const std::vector<token_odds>& top,
           std::vector<token_likelihood>& into);

private:
  std::string bytes_of(token_id token) const;

  const compute::tokenizer* words_;
  std::size_t characters_ = 0;
};

/// Of UTF-8.
std::size_t count_characters(std::string_view text);

/// A token as text: itself where it is UTF-8, else "bytes:\x..." as OpenAI writes parts of
/// characters.
std::string token_text(std::string_view bytes);

/// JSON has no infinity, and clients know this one.
inline constexpr double least_logprob = -9999.0;

} // namespace troupe::actors::serve
