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
/// every machine (libm's differs with the processor) and the compiler can vectorise it. Relative
/// error below 1e-11; below -700, that of -700.
inline double exponential(double x) noexcept {
  constexpr double rounder = 6755399441055744.0; // 1.5 * 2^52: the sum's low bits are an integer
  constexpr double ln2_high = 0.6931471803691238, ln2_low = 1.9082149292705877e-10;
  double bounded = x > -700.0 ? x : -700.0;
  double shifted = bounded * 1.4426950408889634 + rounder;
  double power = shifted - rounder;
  double r = (bounded - power * ln2_high) - power * ln2_low;
  double sum = 1.0 / 362880; // Taylor's series to the ninth power: |r| < 0.35
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  auto exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) + exponent);
}

/// The largest element, or NaN if there is one. As whole numbers in the same order, where a NaN
/// lies beyond an infinity: unlike a maximum of floats, the compiler can vectorise that.
float largest(std::span<const float> logits) noexcept {
  auto key_of = [](float logit) {
    auto bits = std::bit_cast<std::int32_t>(logit);
    return bits ^ ((bits >> 31) & 0x7fffffff);
  };
  std::int32_t high = std::numeric_limits<std::int32_t>::min(), low = ~high;
  for (float logit : logits) {
    high = std::max(high, key_of(logit));
    low = std::min(low, key_of(logit));
  }
  if (high > key_of(-masked) || low < key_of(masked))
    return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(high ^ ((high >> 31) & 0x7fffffff));
}

/// What a token is chosen from: a whole row, or its candidates.
struct choices {
  std::span<const float> logits;
  std::span<const token_id> ids; ///< Ascending; empty: of a whole row, the id is the index.

  token_id id_at(std::size_t at) const noexcept {
    return ids.empty() ? static_cast<token_id>(at) : ids[at];
  }
};

/// The best of the logits; fails on what no arithmetic should have produced.
result<float> best_of(const choices& from, std::uint64_t position) {
  const auto logits = from.logits;
  if (logits.empty())
    return error{errc::invalid_argument,
                 fmt::format("there are no logits at position {} to choose from", position)};
  float best = largest(logits);
  if (std::isnan(best) || best == -masked) {
    std::size_t at = 0;
    while (logits[at] == logits[at] && logits[at] != -masked)
      ++at;
    return error{errc::compute_error,
                 fmt::format("the logit of token {} at position {} is {}; logits are finite, or "
                             "-inf where a token is masked",
                             from.id_at(at),
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

/// A token whose logit was changed, with what the model gave it.
struct seen_token {
  token_id id;
  float logit;
};

using seen_tokens = std::vector<seen_token>; ///< By ascending id.

const seen_token* find(const seen_tokens& among, token_id id) noexcept {
  auto found =
    std::lower_bound(among.begin(), among.end(), id, [](const seen_token& one, token_id other) {
      return one.id < other;
    });
  return found != among.end() && found->id == id ? &*found : nullptr;
}

/// Adds the biases in place and reports what the logits were.
seen_tokens add_biases(std::span<float> logits, std::span<const logit_bias> biases) {
  seen_tokens changed;
  for (auto [token, bias] : biases) {
    if (token >= logits.size())
      break;
    changed.push_back({token, logits[token]});
    logits[token] += bias;
  }
  return changed;
}

void mask(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  if (allowed.empty())
    return;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    bool may = id / 64 < allowed.size() && (allowed[id / 64] >> (id % 64) & 1) != 0;
    logits[id] = may ? logits[id] : masked;
  }
}

/// The best of the model's own distribution.
std::vector<token_odds>
most_probable(std::span<const float> logits, std::uint32_t count, double normaliser) {
  auto best = find_candidates(logits, count).ids;
  std::stable_sort(best.begin(), best.end(), [&](token_id one, token_id other) {
    return logits[one] > logits[other];
  });
  std::vector<token_odds> made;
  for (auto id : best)
    made.push_back({id, static_cast<float>(static_cast<double>(logits[id]) - normaliser)});
  return made;
}

bool has_penalties(const sampling& wish) noexcept {
  return wish.repetition_penalty != 1 || wish.frequency_penalty != 0 || wish.presence_penalty != 0;
}

/// Applies the penalties in place and reports what the logits were.
seen_tokens
penalise(std::span<float> logits, const sampling& wish, std::span<const token_id> history) {
  seen_tokens seen;
  if (!has_penalties(wish))
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

/// What is left to draw from, by ascending id. Weights are probabilities in units of 2^-41 of the
/// best one's: sums of whole numbers are exact in any order, and what is too rare for a unit is no
/// loss. Four million of them fit 64 bits.
struct weighed_choices {
  std::vector<float> logits;
  std::vector<token_id> ids; ///< Empty: all, the id is the index.
  std::vector<std::uint64_t> weights;
};

constexpr double unit = 0x1p41;

/// The cut behind the fewest candidates, best first, whose mass is at least `wanted`. They are
/// dealt into buckets by their distance from the best, so that only those of one bucket are put in
/// order.
template <class Mass>
cut cut_at(
  std::span<const float> logits, double best, double scale, Mass mass, std::uint64_t wanted) {
  constexpr std::size_t buckets = 4096; // the last also holds all beyond exp(-28.4), no unit
  auto bucket_of = [=](float logit) {
    double distance = (best - static_cast<double>(logit)) * scale * 144.0;
    return static_cast<std::uint32_t>(distance < buckets - 1 ? distance : buckets - 1);
  };
  std::vector<std::uint64_t> masses(buckets);
  for (std::size_t at = 0; at < logits.size(); ++at)
    masses[bucket_of(logits[at])] += mass(at);
  std::uint64_t above = 0;
  std::uint32_t edge = 0;
  while (edge + 1 < buckets && above + masses[edge] < wanted)
    above += masses[edge++];
  std::vector<token_id> close;
  for (std::size_t at = 0; at < logits.size(); ++at)
    if (bucket_of(logits[at]) == edge)
      close.push_back(static_cast<token_id>(at));
  auto first = close.begin(), last = close.end();
  while (last - first > 1) { // halves: the mass is reached in the better one or in the other
    auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, [&](token_id a, token_id b) {
      return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    std::uint64_t better = 0;
    for (auto at = first; at != middle; ++at)
      better += mass(*at);
    if (above + better >= wanted) {
      last = middle;
    } else {
      above += better;
      first = middle;
    }
  }
  return first == close.end() ? cut{} : cut{logits[*first], *first};
}

weighed_choices keep_top_k(const choices& from, double best, double scale, std::size_t k) {
  const auto logits = from.logits;
  weighed_choices kept;
  if (k == 0 || k >= logits.size()) {
    kept.logits.assign(logits.begin(), logits.end());
    kept.ids.assign(from.ids.begin(), from.ids.end());
    return kept;
  }
  cut edge = cut_at(
    logits, best, scale, [](std::size_t) { return std::uint64_t{1}; }, k);
  for (token_id at = 0; at < logits.size(); ++at)
    if (edge.keeps(logits[at], at)) {
      kept.ids.push_back(from.id_at(at));
      kept.logits.push_back(logits[at]);
    }
  return kept;
}

void weigh(weighed_choices& from, double best, double scale) {
  from.weights.resize(from.logits.size());
  const float* logits = from.logits.data();
  std::uint64_t* weights = from.weights.data();
  for (std::size_t at = 0; at < from.logits.size(); ++at) {
    double weight = exponential((static_cast<double>(logits[at]) - best) * scale);
    // Added to 2^52, the whole units are the low bits: a conversion that can be vectorised.
    constexpr std::uint64_t low_bits = (std::uint64_t{1} << 52) - 1;
    weights[at] = std::bit_cast<std::uint64_t>(weight * unit + 0x1p52) & low_bits;
  }
}

std::uint64_t sum_of(std::span<const std::uint64_t> weights) noexcept {
  std::uint64_t sum = 0;
  for (std::uint64_t weight : weights)
    sum += weight;
  return sum;
}

/// `part` of `whole`, at most the whole.
std::uint64_t part_of(std::uint64_t whole, double part) noexcept {
  return std::min(whole, static_cast<std::uint64_t>(static_cast<double>(whole) * part));
}

void keep_top_p(weighed_choices& from, double best, double scale, double part) {
  auto mass = [&](std::size_t at) { return from.weights[at]; };
  auto wanted = std::max<std::uint64_t>(1, part_of(sum_of(from.weights), part));
  cut edge = cut_at(from.logits, best, scale, mass, wanted);
  for (std::size_t at = 0; at < from.logits.size(); ++at)
    from.weights[at] =
      edge.keeps(from.logits[at], static_cast<token_id>(at)) ? from.weights[at] : 0;
}

/// Uniform in [0, 1), a function of seed, stream and position alone.
double uniform(const sampling& wish, std::uint64_t position) noexcept {
  auto low = [](std::uint64_t wide) { return static_cast<std::uint32_t>(wide); };
  auto words = philox({low(position), low(position >> 32), wish.stream, 0},
                      {low(wish.seed), low(wish.seed >> 32)});
  std::uint64_t bits = (std::uint64_t{words[1]} << 32 | words[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

token_id draw(const choices& given, double best, const sampling& wish, std::uint64_t position) {
  // The bound is for subnormal temperatures, whose inverse is infinite: 0 * inf is no weight.
  double scale = std::min(1.0 / static_cast<double>(wish.temperature), 0x1p200);
  auto from = keep_top_k(given, best, scale, wish.top_k);
  weigh(from, best, scale);
  if (wish.top_p < 1)
    keep_top_p(from, best, scale, static_cast<double>(wish.top_p));
  auto least = static_cast<std::uint64_t>(static_cast<double>(wish.min_p) * unit);
  if (least > 0)
    for (std::uint64_t& weight : from.weights)
      weight = weight < least ? 0 : weight;
  auto total = sum_of(from.weights);
  auto target = std::min(part_of(total, uniform(wish, position)), total - 1);
  std::size_t at = 0;
  for (std::uint64_t sum = from.weights[0]; sum <= target; sum += from.weights[at])
    ++at;
  return from.ids.empty() ? static_cast<token_id>(at) : from.ids[at];
}

token_id choose(const choices& from, float best, const sampling& wish, std::uint64_t position) {
  if (wish.temperature > 0)
    return draw(from, best, wish, position);
  const auto found = std::find(from.logits.begin(), from.logits.end(), best);
  return from.id_at(static_cast<std::size_t>(found - from.logits.begin()));
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

result<void> validate_rules(const sampling_rules& rules) {
  if (rules.top > sampling_rules::most_top)
    return error{
      errc::invalid_argument,
      fmt::format("top_logprobs is {}, but must be 0 ... {}", rules.top, sampling_rules::most_top)};
  if (rules.biases.size() > sampling_rules::most_biases)
    return error{errc::invalid_argument,
                 fmt::format("logit_bias has {} tokens, but may have {} at most",
                             rules.biases.size(),
                             sampling_rules::most_biases)};
  for (std::size_t at = 0; at < rules.biases.size(); ++at) {
    auto [token, bias] = rules.biases[at];
    if (!(bias >= -100 && bias <= 100))
      return error{
        errc::invalid_argument,
        fmt::format("logit_bias of token {} is {}, but must be -100 ... 100", token, bias)};
    if (at > 0 && token <= rules.biases[at - 1].token)
      return error{errc::invalid_argument,
                   fmt::format("logit_bias names token {} twice or out of order", token)};
  }
  return {};
}

result<choice> sample(std::span<float> logits,
                      const sampling& wish,
                      std::span<const token_id> history,
                      std::uint64_t position,
                      const sampling_rules& rules) {
  if (auto valid = validate(wish); !valid)
    return valid.error();
  const choices from{logits, {}};
  auto best = best_of(from, position);
  if (!best)
    return best.error();
  choice made;
  bool wants_odds = wish.with_logprob || rules.top > 0;
  double normaliser = wants_odds ? log_sum_exp(logits, *best) : 0;
  if (rules.top > 0)
    made.top = most_probable(logits, rules.top, normaliser);
  auto biased = add_biases(logits, rules.biases);
  mask(logits, rules.allowed);
  auto seen = penalise(logits, wish, history);
  if (!seen.empty() || !biased.empty() || !rules.allowed.empty())
    if (best = best_of(from, position); !best)
      return best.error();
  made.token = choose(from, *best, wish, position);
  if (wish.with_logprob) {
    auto changed = find(biased, made.token); // first: penalties came on top of it
    if (changed == nullptr)
      changed = find(seen, made.token);
    float logit = changed != nullptr ? changed->logit : logits[made.token];
    made.logprob = static_cast<float>(static_cast<double>(logit) - normaliser);
  }
  return made;
}

std::uint32_t candidates_for(const sampling& wish) noexcept {
  if (wish.with_logprob || has_penalties(wish))
    return 0;
  if (wish.temperature == 0)
    return 1;
  return wish.top_k <= most_candidates ? wish.top_k : 0; // 0 is off
}

result<choice> sample(const token_candidates& from, const sampling& wish, std::uint64_t position) {
  if (auto valid = validate(wish); !valid)
    return valid.error();
  if (candidates_for(wish) == 0)
    return error{
      errc::contract_violation,
      fmt::format("the token at position {} needs whole logits, but candidates came", position)};
  const choices given{from.logits, from.ids};
  auto best = best_of(given, position);
  if (!best)
    return best.error();
  choice made;
  made.token = choose(given, *best, wish, position);
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
