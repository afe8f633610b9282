#pragma once
// From logits to one token: penalties, temperature, truncation, and a draw that any rank repeats.

#include "compute/candidates.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::compute {

/// How a request wants its tokens to be chosen. The defaults are greedy and without any filter.
struct sampling {
  float temperature = 0;        ///< 0: greedy, filters and seed play no role. Finite, >= 0.
  std::uint32_t top_k = 0;      ///< Keep the k most probable; 0: off.
  float top_p = 1;              ///< Keep the fewest that hold this mass, at least one. 0 ... 1.
  float min_p = 0;              ///< Drop what is less than this part of the best. 0 ... 1.
  float repetition_penalty = 1; ///< Divides (or multiplies, if negative) logits seen. > 0.
  float frequency_penalty = 0;  ///< Subtracted once per occurrence in the history. -2 ... 2.
  float presence_penalty = 0;   ///< Subtracted once if in the history at all. -2 ... 2.
  std::uint64_t seed = 0;
  std::uint32_t stream = 0; ///< Which of the seed's draws: answers to one prompt have one each.
  bool with_logprob = true; ///< false saves one pass over the logits; choice::logprob is then 0.
};

/// invalid_argument that names the field, the value found and the range.
result<void> validate(const sampling& wish);

/// What is added to the logit of one token.
struct logit_bias {
  token_id token = 0;
  float bias = 0; ///< -100 ... 100
};

/// What only some requests ask for; the defaults cost nothing.
struct sampling_rules {
  static constexpr std::uint32_t most_top = 20;
  static constexpr std::size_t most_biases = 1024;

  /// Added before the penalties. By ascending token, each once; ids beyond the vocabulary are
  /// ignored.
  std::span<const logit_bias> biases;
  /// One bit a token, the lowest first; a token whose bit is 0 or missing is not chosen. Empty: all
  /// may be.
  std::span<const std::uint64_t> allowed;
  std::uint32_t top = 0; ///< How many of choice::top are wanted; at most most_top.
};

/// invalid_argument that names the field, the value found and the range.
result<void> validate_rules(const sampling_rules& rules);

/// A token and the natural logarithm of its probability in the model's own distribution.
struct token_odds {
  token_id token = 0;
  float logprob = 0;
};

struct choice {
  token_id token = 0;
  /// Natural logarithm of the token's probability in the model's own distribution: the softmax of
  /// the logits as given, before masks, biases, penalties, temperature and filters.
  float logprob = 0;
  /// The most probable tokens in that distribution, best first, equal ones by id. As many as were
  /// wanted; fewer if the vocabulary is smaller.
  std::vector<token_odds> top;
};

/// Chooses the token at `position` (the number of tokens before it in its sequence).
///
/// First the tokens that are not allowed are masked and biases added; then the order is that of
/// Hugging Face transformers: penalties, temperature, top-k, top-p over what
/// top-k left, min-p. Candidates are ordered by logit, equal logits by id, lowest first; so a tie
/// at the edge of a filter and a greedy tie both go to the lowest id. Probabilities are whole
/// numbers of 2^-41 of the best one's, from an exponential of our own: the same input gives the
/// same token on every machine, which replay after a fault relies on. What is rarer than that is
/// not drawn.
///
/// `logits` (one a vocabulary entry) is used as scratch: its content is undefined afterwards.
/// `history` is the text so far; ids beyond the vocabulary in it are ignored. Minus infinity masks
/// a token. compute_error: NaN or plus infinity in the logits, or everything masked; the message
/// names the id and the position. Any thread; no state between calls.
result<choice> sample(std::span<float> logits,
                      const sampling& wish,
                      std::span<const token_id> history,
                      std::uint64_t position,
                      const sampling_rules& rules = {});

/// How many of the best logits are enough to choose the token of such a wish: 1 where it is greedy,
/// top_k where these are no more than most_candidates. 0: all are looked at, by penalties, by a
/// probability, or by a temperature without such a top_k. What sampling_rules ask for does so too.
std::uint32_t candidates_for(const sampling& wish) noexcept;

/// The same token as from whole logits, of candidates_for(wish) candidates at least, or of all
/// tokens where these are fewer. contract_violation where the wish looks at all logits; other
/// errors as above.
result<choice> sample(const token_candidates& from, const sampling& wish, std::uint64_t position);

/// Philox4x32-10: counter and key to four random words. Salmon, Moraes, Dror, Shaw: "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011. The sampler uses counter {position low, position
/// high, stream, 0} and key {seed low, seed high}; the draw is the upper 53 bits of words 1 and 0.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept;

} // namespace troupe::compute
