#pragma once
// The rows of one step: which sequence each row belongs to, at which position, and where the
// attention state of that sequence lies.

#include "config/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::compute {

/// Consecutive new tokens of one sequence within a step.
struct sequence_rows {
  /// Pages that hold positions 0 ... position + count - 1, in order; page i holds the positions
  /// [i * kv_page_tokens, (i + 1) * kv_page_tokens). The same ids are valid on every rank.
  std::vector<page_id> pages;
  std::uint32_t first_row = 0; ///< Row of the step's tensors where this sequence starts.
  std::uint32_t position = 0;  ///< Position of the first new token; that many are in the state.
  std::uint32_t count = 0;     ///< New tokens, at least 1.
  bool wants_output = true;    ///< Whether the last row's logits are asked for.
  /// How many of these are enough, the best ones, where ranks would have to gather them: at most
  /// most_candidates, the same on every rank. 0: all are looked at.
  std::uint32_t candidates = 0;
};

/// All rows of a step. Rows of a sequence are contiguous, and sequences follow each other without
/// gaps: first_row of the next is first_row + count of the one before.
struct batch {
  std::vector<sequence_rows> sequences;

  std::size_t rows() const noexcept {
    return sequences.empty() ? 0 : sequences.back().first_row + sequences.back().count;
  }

  std::size_t output_rows() const noexcept {
    std::size_t count = 0;
    for (const auto& sequence : sequences)
      count += sequence.wants_output ? 1 : 0;
    return count;
  }
};

/// Positions in one page of attention state. Attention walks the keys in blocks of this many, which
/// fixes its order of summation (the same bits whatever the batch and the chunks of a prompt).
inline constexpr std::size_t kv_page_tokens = 32;

/// Pages that hold so many positions.
constexpr std::size_t pages_for(std::size_t tokens) {
  return (tokens + kv_page_tokens - 1) / kv_page_tokens;
}

} // namespace troupe::compute
