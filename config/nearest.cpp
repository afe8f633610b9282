#include "config/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace troupe {

namespace {

// No key is nearly as long; longer words are compared by their beginning, which bounds the work.
constexpr std::size_t longest_word = 64;

// Optimal string alignment: insert, delete, replace, or swap two neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i)
    at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      auto best = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, at(i - 2, j - 2) + 1);
      at(i, j) = best;
    }
  }
  return cost.back();
}

} // namespace

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  word = word.substr(0, longest_word);
  std::string_view best;
  // More than a third of the letters wrong is another word, not a misspelling.
  auto best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const auto candidate : known) {
    auto distance = edit_distance(word, candidate.substr(0, longest_word));
    // "prompt_tokens" for "max_prompt_tokens": half of a compound is a likely slip as well.
    if (word.size() >= 4 && candidate.find(word) != std::string_view::npos)
      distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string{best};
}

} // namespace troupe
