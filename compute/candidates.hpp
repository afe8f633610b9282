#pragma once
// The candidates of a row of logits: its best ones, where these give the same token as all would.
// Ranks of a tensor group exchange them instead of whole rows.

#include "config/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::compute {

/// So many of a row at most; who needs more looks at whole logits.
inline constexpr std::uint32_t most_candidates = 64;

/// What one takes on its way: its logit and its id.
inline constexpr std::size_t candidate_bytes = sizeof(float) + sizeof(token_id);

/// Some tokens of a row, by ascending id, each once.
struct token_candidates {
  std::vector<token_id> ids;
  std::vector<float> logits; ///< One each.

  bool empty() const noexcept { return ids.empty(); }
};

/// The best `count` of the logits, all where there are fewer: the highest, of equal ones the lowest
/// ids. An id is the place in `logits`, which are finite or minus infinity.
token_candidates find_candidates(std::span<const float> logits, std::size_t count);

} // namespace troupe::compute
