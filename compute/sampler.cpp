#include "compute/sampler.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace troupe::compute {

namespace {

constexpr float masked = -std::numeric_limits<float>::infinity();

/// The exponential for x <= 0, from additions and multiplications alone, so that it is the same on
/// every machine (libm's differs with the processor) and the compiler can vectorise it. Within
/// 2 units in the last place; below -700, zero.
inline double exponential(double x) noexcept {
  constexpr double rounder = 6755399441055744.0; // 1.5 * 2^52: the sum's low bits are an integer
  constexpr double ln2_high = 0.6931471803691238, ln2_low = 1.9082149292705877e-10;
  double bounded = x < -700.0 ? -700.0 : x;
  double shifted = bounded * 1.4426950408889634 + rounder;
  double power = shifted - rounder;
  double r = (bounded - power * ln2_high) - power * ln2_low;
  double sum = 1.0 / 479001600;
  for (double coefficient : {1.0 / 39916800,
                             1.0 / 3628800,
                             1.0 / 362880,
                             1.0 / 40320,
                             1.0 / 5040,
                             1.0 / 720,
                             1.0 / 120,
                             1.0 / 24,
                             1.0 / 6,
                             0.5,
                             1.0,
                             1.0})
    sum = sum * r + coefficient;
  auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
  double scaled = std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) + exponent);
  return x < -700.0 ? 0.0 : scaled;
}

/// The best of the logits; fails on what no arithmetic should have produced.
result<float> best_of(std::span<const float> logits, std::uint64_t position) {
  float best = masked;
  bool nan = false;
  for (float logit : logits) {
    best = logit > best ? logit : best;
    nan |= logit != logit;
  }
  if (nan || best == -masked) {
    std::size_t at = 0;
    while (logits[at] == logits[at] && logits[at] != -masked)
      ++at;
    return error{errc::compute_error,
                 fmt::format("the logit of token {} at position {} is {}; logits are finite, or "
                             "-inf where a token is masked",
                             at,
                             position,
                             logits[at])};
  }
  if (best == masked)
    return error{errc::compute_error,
                 fmt::format("all {} logits at position {} are -inf, no token is left to choose",
                             logits.size(),
                             position)};
  return best;
}

/// One distinct token of the history, with the logit it had before the penalties.
struct seen_token {
  token_id id;
  float logit;
};

/// Applies the penalties in place and reports what the logits were.
std::vector<seen_token>
penalise(std::span<float> logits, const sampling& wish, std::span<const token_id> history) {
  std::vector<seen_token> seen;
  if (wish.repetition_penalty == 1 && wish.frequency_penalty == 0 && wish.presence_penalty == 0)
    return seen;
  std::vector<token_id> sorted(history.begin(), history.end());
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t at = 0; at < sorted.size() && sorted[at] < logits.size();) {
    std::size_t first = at;
    while (at < sorted.size() && sorted[at] == sorted[first])
      ++at;
    float& logit = logits[sorted[first]];
    seen.push_back({sorted[first], logit});
    logit = logit > 0 ? logit / wish.repetition_penalty : logit * wish.repetition_penalty;
    logit -= static_cast<float>(at - first) * wish.frequency_penalty + wish.presence_penalty;
  }
  return seen;
}

/// Every filter keeps a prefix of the order (logit descending, id ascending); this is its last.
struct cut {
  float logit = masked;
  token_id last = std::numeric_limits<token_id>::max();

  bool keeps(float other, token_id id) const noexcept {
    return other > logit || (other == logit && id <= last);
  }
};

struct candidate {
  float logit;
  token_id id;
};

bool before(const candidate& a, const candidate& b) noexcept {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

cut top_k_cut(std::span<const float> logits, std::size_t k) {
  if (k == 0 || k >= logits.size())
    return {};
  std::vector<candidate> kept;
  if (k > logits.size() / 8) { // a heap of this size would be slower than one selection
    for (token_id id = 0; id < logits.size(); ++id)
      kept.push_back({logits[id], id});
    std::nth_element(
      kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(k - 1), kept.end(), before);
    return {kept[k - 1].logit, kept[k - 1].id};
  }
  for (token_id id = 0; id < k; ++id)
    kept.push_back({logits[id], id});
  std::make_heap(kept.begin(), kept.end(), before); // the worst of the kept is in front
  for (token_id id = static_cast<token_id>(k); id < logits.size(); ++id) {
    if (logits[id] <= kept.front().logit) // an equal logit of a higher id comes later
      continue;
    std::pop_heap(kept.begin(), kept.end(), before);
    kept.back() = {logits[id], id};
    std::push_heap(kept.begin(), kept.end(), before);
  }
  return {kept.front().logit, kept.front().id};
}

/// The unnormalised probability of each token, 1 for the best, 0 for what `kept` does not keep.
std::vector<double>
weights_of(std::span<const float> logits, float best, float temperature, const cut& kept) {
  std::vector<double> weights(logits.size());
  double inverse = 1.0 / static_cast<double>(temperature);
  if (!std::isfinite(inverse)) // a subnormal temperature
    inverse = std::numeric_limits<double>::max();
  double shift = best;
  for (std::size_t id = 0; id < logits.size(); ++id)
    weights[id] = exponential((static_cast<double>(logits[id]) - shift) * inverse);
  if (kept.logit != masked)
    for (token_id id = 0; id < logits.size(); ++id)
      if (!kept.keeps(logits[id], id))
        weights[id] = 0;
  return weights;
}

double sum_of(std::span<const double> weights) noexcept {
  double sum = 0;
  for (double weight : weights)
    sum += weight;
  return sum;
}

/// The fewest tokens, best first, whose mass reaches `part` of the whole. The weights are dealt
/// into buckets by magnitude, so that only the bucket in which the mass is reached has to be
/// sorted.
cut top_p_cut(std::span<const float> logits, std::span<const double> weights, double part) {
  constexpr std::size_t buckets = 4096;
  // The first 64 buckets hold weights of [1, 2), 64 buckets a power of two; all below 2^-64 share the last.
  auto bucket_of = [](double weight) {
    constexpr std::uint64_t top = (std::uint64_t{0x3FF} << 6) + 63; // exponent and 6 bits, just < 2
    std::uint64_t distance = top - (std::bit_cast<std::uint64_t>(weight) >> 46);
    return std::min<std::uint64_t>(distance, buckets - 1);
  };
  std::vector<double> mass(buckets);
  for (double weight : weights)
    mass[bucket_of(weight)] += weight;
  double wanted = part * sum_of(mass), above = 0;
  std::size_t edge = 0;
  while (edge + 1 < buckets && (mass[edge] == 0 || above + mass[edge] < wanted))
    above += mass[edge++];
  std::vector<candidate> close;
  for (token_id id = 0; id < logits.size(); ++id)
    if (weights[id] > 0 && bucket_of(weights[id]) == edge)
      close.push_back({logits[id], id});
  if (close.empty())
    return {};
  std::sort(close.begin(), close.end(), before);
  for (const auto& next : close) {
    above += weights[next.id];
    if (above >= wanted)
      return {next.logit, next.id};
  }
  return {close.back().logit, close.back().id};
}

/// Uniform in [0, 1), a function of seed and position alone.
double uniform(std::uint64_t seed, std::uint64_t position) noexcept {
  auto low = [](std::uint64_t wide) { return static_cast<std::uint32_t>(wide); };
  auto words = philox({low(position), low(position >> 32), 0, 0}, {low(seed), low(seed >> 32)});
  std::uint64_t bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

token_id
draw(std::span<const float> logits, float best, const sampling& wish, std::uint64_t position) {
  auto weights = weights_of(logits, best, wish.temperature, top_k_cut(logits, wish.top_k));
  if (wish.top_p < 1) {
    cut kept = top_p_cut(logits, weights, wish.top_p);
    for (token_id id = 0; id < logits.size(); ++id)
      if (!kept.keeps(logits[id], id))
        weights[id] = 0;
  }
  if (wish.min_p > 0)
    for (double& weight : weights)
      if (weight < static_cast<double>(wish.min_p))
        weight = 0;
  double target = uniform(wish.seed, position) * sum_of(weights), sum = 0;
  token_id last = 0;
  for (token_id id = 0; id < weights.size(); ++id) {
    if (weights[id] == 0)
      continue;
    last = id;
    sum += weights[id];
    if (sum > target)
      break;
  }
  return last;
}

/// log(sum(exp(logits))) of finite or masked logits.
double log_sum_exp(std::span<const float> logits, float best) {
  double lanes[4] = {}; // a fixed order that the compiler can vectorise
  std::size_t id = 0;
  double shift = best;
  for (; id + 4 <= logits.size(); id += 4)
    for (std::size_t lane = 0; lane < 4; ++lane)
      lanes[lane] += exponential(static_cast<double>(logits[id + lane]) - shift);
  for (; id < logits.size(); ++id)
    lanes[0] += exponential(static_cast<double>(logits[id]) - shift);
  return shift + std::log((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
}

} // namespace

result<void> validate(const sampling& wish) {
  auto outside = [](std::string_view field, float value, std::string_view range) {
    return error{errc::invalid_argument,
                 fmt::format("{} is {}, but must be {}", field, value, range)};
  };
  auto within = [](float value, float low, float high) { return value >= low && value <= high; };
  constexpr float most = std::numeric_limits<float>::max();
  if (!within(wish.temperature, 0, most))
    return outside("temperature", wish.temperature, "finite and at least 0 (0 is greedy)");
  if (!within(wish.top_p, 0, 1))
    return outside("top_p", wish.top_p, "in 0 ... 1 (1 is off)");
  if (!within(wish.min_p, 0, 1))
    return outside("min_p", wish.min_p, "in 0 ... 1 (0 is off)");
  if (!within(wish.repetition_penalty, std::numeric_limits<float>::min(), most))
    return outside("repetition_penalty", wish.repetition_penalty, "finite and above 0 (1 is off)");
  if (!within(wish.frequency_penalty, -2, 2))
    return outside("frequency_penalty", wish.frequency_penalty, "in -2 ... 2 (0 is off)");
  if (!within(wish.presence_penalty, -2, 2))
    return outside("presence_penalty", wish.presence_penalty, "in -2 ... 2 (0 is off)");
  return {};
}

result<choice> sample(std::span<float> logits,
                      const sampling& wish,
                      std::span<const token_id> history,
                      std::uint64_t position) {
  if (auto valid = validate(wish); !valid)
    return valid.error();
  if (logits.empty())
    return error{errc::invalid_argument,
                 fmt::format("there are no logits at position {} to choose from", position)};
  auto best = best_of(logits, position);
  if (!best)
    return best.error();
  double normaliser = wish.with_logprob ? log_sum_exp(logits, *best) : 0;
  auto seen = penalise(logits, wish, history);
  if (!seen.empty())
    if (best = best_of(logits, position); !best)
      return best.error();
  choice made;
  if (wish.temperature > 0)
    made.token = draw(logits, *best, wish, position);
  else
    made.token =
      static_cast<token_id>(std::find(logits.begin(), logits.end(), *best) - logits.begin());
  if (wish.with_logprob) {
    auto found = std::lower_bound(
      seen.begin(), seen.end(), made.token, [](const seen_token& token, token_id id) {
        return token.id < id;
      });
    bool changed = found != seen.end() && found->id == made.token;
    float logit = changed ? found->logit : logits[made.token];
    made.logprob = static_cast<float>(static_cast<double>(logit) - normaliser);
  }
  return made;
}

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

} // namespace troupe::compute
