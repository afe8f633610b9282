#pragma once
// Where a rank stands: axes, coordinates, neighbours, and the one split rule. Pure functions.
// Contract rules 1, 2, 65 and 66.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <vector>

namespace troupe {

/// Half-open range of units (layers, heads, rows, columns, vocabulary entries).
struct range {
  std::size_t begin = 0;
  std::size_t end = 0;

  constexpr std::size_t size() const noexcept { return end - begin; }

  constexpr bool empty() const noexcept { return begin == end; }

  constexpr bool contains(std::size_t unit) const noexcept { return unit >= begin && unit < end; }

  friend constexpr bool operator==(const range&, const range&) = default;
};

/// Part `index` of `parts` balanced contiguous parts of [0, count): the remainder goes to the first
/// owners, so (10, 3) gives 4, 3, 3. The part may be empty when count < parts.
/// Needs parts >= 1 and index < parts (check).
range split_part(std::size_t count, std::size_t parts, std::size_t index);

/// All parts of split_part; an empty part is an error that names the counts.
result<std::vector<range>> split_evenly(std::size_t count, std::size_t parts);

/// Sizes of the four axes; each at least 1.
struct axes {
  std::size_t data = 1;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::size_t expert = 1;
};

/// Where one rank stands on each axis.
struct coordinates {
  std::size_t data = 0;
  std::size_t pipeline = 0;
  std::size_t tensor = 0;
  std::size_t expert = 0;

  friend bool operator==(const coordinates&, const coordinates&) = default;
};

/// A validated set of axes. Rank numbering: data outermost, expert innermost,
/// rank = ((data * PP + pipeline) * TP + tensor) * EP + expert.
class topology {
public:
  /// Refuses an axis of size 0, a product that does not fit, and data or expert axes above 1,
  /// which are not implemented.
  static result<topology> make(const axes& sizes);

  /// As make, but allows data and expert axes: the numbering alone, for tests and planning.
  static result<topology> make_numbering(const axes& sizes);

  const axes& sizes() const noexcept { return sizes_; }

  std::size_t world() const noexcept;

  /// Error when rank >= world().
  result<coordinates> locate(rank_id rank) const;

  /// Coordinates must lie inside of the axes (check).
  rank_id rank_at(const coordinates& where) const;

  /// The ranks that differ from `rank` on one axis only, itself included, ascending.
  std::vector<rank_id> tensor_peers(rank_id rank) const;
  std::vector<rank_id> pipeline_peers(rank_id rank) const;
  std::vector<rank_id> expert_peers(rank_id rank) const;

private:
  explicit topology(const axes& sizes) : sizes_(sizes) {}

  coordinates place(rank_id rank) const;

  axes sizes_;
};

} // namespace troupe
