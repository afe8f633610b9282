#include "compute/candidates.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::compute {
namespace {

/// A loop without branches, so that the compiler can vectorise it.
bool any_above(std::span<const float> logits, float bound) noexcept {
  std::uint32_t any = 0;
  for (const float logit : logits)
    any |= logit > bound ? 1 : 0;
  return any != 0;
}

} // namespace

token_candidates find_candidates(std::span<const float> logits, std::size_t count) {
  token_candidates found;
  found.ids.resize(std::min(count, logits.size()));
  if (found.empty())
    return found;
  auto& best = found.ids; // a heap whose front is the worst of them
  std::iota(best.begin(), best.end(), token_id{0});
  const auto better = [logits](token_id one, token_id other) {
    return logits[one] > logits[other] || (logits[one] == logits[other] && one < other);
  };
  std::make_heap(best.begin(), best.end(), better);
  constexpr std::size_t block = 64; // few of them hold anything that is better
  for (std::size_t begin = best.size(); begin < logits.size(); begin += block) {
    const auto end = std::min(begin + block, logits.size());
    if (!any_above(logits.subspan(begin, end - begin), logits[best.front()]))
      continue;
    for (auto id = static_cast<token_id>(begin); id < end; ++id) {
      if (!better(id, best.front()))
        continue;
      std::pop_heap(best.begin(), best.end(), better);
      best.back() = id;
      std::push_heap(best.begin(), best.end(), better);
    }
  }
  std::sort(best.begin(), best.end());
  for (const auto id : best)
    found.logits.push_back(logits[id]);
  return found;
}

} // namespace troupe::compute
