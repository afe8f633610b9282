// One block of attention: some rows of a sequence and the heads that share a key/value head.
// Included once per instruction set (Highway's foreach_target), hence no #pragma once.
//
// For one row and head the pages of its visible positions are taken in ascending order, with a
// running maximum:
//
//   score[key] = one chain over head_dim, times scale       for each of the 32 keys of the page
//   p[key]     = exp(score[key] - maximum), 0 if masked
//   total[key] = total[key] * c + p[key]                    32 of them, one a key lane
//   sum[dim]   = sum[dim] * c, then + p[key] * value[key][dim], key by key
//
// where c = exp(old maximum - new maximum). At the end the 32 totals are added pairwise. This order
// is the same alone, in a batch and in a chunk of any size. The rows and heads of a block go
// through a page together, so that it is read once for all of them. Positions that a row may not
// see never enter its arithmetic: their memory may hold anything.

#if defined(TROUPE_COMPUTE_CPU_ATTENTION_BLOCK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_ATTENTION_BLOCK_INL
#undef TROUPE_COMPUTE_CPU_ATTENTION_BLOCK_INL
#else
#define TROUPE_COMPUTE_CPU_ATTENTION_BLOCK_INL
#endif

#include "compute/cpu/attention_job.hpp"
#include "compute/cpu/exponential-inl.hpp"
#include "compute/cpu/tile-inl.hpp"

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// Two planes (the keys or the values of a page and head) that are needed soon.
template <class Held>
struct coming_planes {
  const Held* next;
  const Held* later;
  std::size_t bytes; ///< Of each.
};

/// The working state of one block, of keys and values held as Held: query q = row * heads + head has the q-th part of each array.
template <class Held>
class block_state {
public:
  block_state(const attention_job& job, const attention_block& block, scratch& memory)
    : job_(job), block_(block), queries_(block.rows * block.heads.size()),
      head_dim_(job.call->head_dim), cut_{queries_},
      lane_tiles_((head_dim_ + tile_lanes - 1) / tile_lanes) {
    const auto summed = lane_tiles_ * tile_lanes;
    float* room = memory.floats(queries_ * (head_dim_ + summed + 2 * kv_page_tokens + 1));
    sums_ = room;
    scores_ = sums_ + queries_ * summed;
    totals_ = scores_ + queries_ * kv_page_tokens;
    inputs_ = totals_ + queries_ * kv_page_tokens;
    largest_ = inputs_ + queries_ * head_dim_;
  }

  void attend() {
    gather();
    for (auto page = visible(0).begin / kv_page_tokens; page <= last_page(); ++page)
      walk_page(page);
    finish();
  }

private:
  std::size_t position(std::size_t row) const {
    return block_.sequence->position + block_.first + row;
  }

  std::size_t last_page() const { return position(block_.rows - 1) / kv_page_tokens; }

  using planes = coming_planes<Held>;

  const Held* keys_of(std::size_t page) const {
    const auto id = block_.sequence->pages[page];
    return job_.cache->template keys<const Held>(job_.call->layer, id, block_.kv_head);
  }

  /// Positions that a row sees.
  range visible(std::size_t row) const {
    const auto end = position(row) + 1;
    const auto window = job_.call->window;
    return {window > 0 && end > window ? end - window : 0, end};
  }

  /// Those of them that lie in a page, counted within it.
  range visible(std::size_t row, std::size_t page) const {
    const auto all = visible(row);
    const auto start = page * kv_page_tokens;
    const auto begin = std::clamp(all.begin, start, start + kv_page_tokens);
    const auto end = std::clamp(all.end, begin, start + kv_page_tokens);
    return {begin - start, end - start};
  }

  void gather() {
    const auto heads = block_.heads.size();
    for (std::size_t t = 0; t < cut_.count(); ++t)
      for (std::size_t i = 0; i < cut_.height(t); ++i) {
        const auto q = cut_.first(t) + i;
        const auto row = block_.sequence->first_row + block_.first + q / heads;
        const float* from = job_.queries.row(row) + block_.heads[q % heads] * head_dim_;
        float* to = inputs_ + cut_.first(t) * head_dim_ + i;
        for (std::size_t d = 0; d < head_dim_; ++d)
          to[d * cut_.height(t)] = from[d];
      }
    std::fill_n(sums_, queries_ * lane_tiles_ * tile_lanes, 0.0f);
    std::fill_n(totals_, queries_ * kv_page_tokens, 0.0f);
    std::fill_n(largest_, queries_, -std::numeric_limits<float>::infinity());
  }

  void walk_page(std::size_t page) {
    const auto* keys = keys_of(page);
    const auto* values = job_.cache->values_after(keys);
    // The planes that will be walked after these; past the last page nothing new.
    const auto* after = page < last_page() ? keys_of(page + 1) : keys;
    const auto bytes = kv_page_tokens * head_dim_ * sizeof(Held);
    const auto heads = block_.heads.size();
    score(keys, {values, after, bytes});
    bool whole = true;
    for (std::size_t row = 0; row < block_.rows; ++row) {
      const auto seen = visible(row, page);
      whole &= seen.size() == kv_page_tokens;
      for (std::size_t head = 0; head < heads && seen.size() > 0; ++head)
        weigh(row * heads + head, seen);
    }
    if (whole) {
      add_values(
        values, {0, kv_page_tokens}, 0, queries_, {after, job_.cache->values_after(after), bytes});
      return;
    }
    for (std::size_t row = 0; row < block_.rows; ++row)
      if (const auto seen = visible(row, page); seen.size() > 0)
        add_values(values, seen, row * heads, heads, {after, after, 0});
  }

  /// Bytes of a plane that each of so many steps asks for: whole lines, all of it in the end.
  static std::size_t fetched_a_step(const planes& coming, std::size_t steps) {
    return (coming.bytes / steps + 63) / 64 * 64;
  }

  /// What the `call`-th tile of `count` steps asks for.
  static fetch_coming
  part_of(const planes& coming, std::size_t bytes, std::size_t call, std::size_t count) {
    const auto first = call * count * bytes;
    const auto* next = reinterpret_cast<const std::byte*>(coming.next);
    const auto* later = reinterpret_cast<const std::byte*>(coming.later);
    if (first + count * bytes > coming.bytes)
      return {next, later, 0};
    return {next + first, later + first, bytes};
  }

  /// Scores of all queries for the keys of a page.
  void score(const Held* keys, const planes& coming) {
    using page_rows = regular<const Held, kv_page_tokens>;
    using score_rows = regular<float, kv_page_tokens>;
    static constexpr auto tiles =
      make_tiles<tile_vectors, page_rows, side_by_side, score_rows, nothing_kept, fetch_coming>();
    constexpr auto passes = kv_page_tokens / tile_lanes;
    const auto bytes = fetched_a_step(coming, cut_.count() * passes * head_dim_);
    for (std::size_t t = 0; t < cut_.count(); ++t)
      for (std::size_t pass = 0; pass < passes; ++pass)
        tiles[cut_.height(t) - 1]({keys + pass * tile_lanes},
                                  head_dim_,
                                  {inputs_ + cut_.first(t) * head_dim_},
                                  {scores_ + cut_.first(t) * kv_page_tokens + pass * tile_lanes},
                                  false,
                                  part_of(coming, bytes, t * passes + pass, head_dim_),
                                  {});
  }

  /// sums of queries [first, first + count) += p * value over the keys `seen`.
  void add_values(const Held* values,
                  range seen,
                  std::size_t first,
                  std::size_t count,
                  const planes& coming) {
    using weight_rows = regular<const float, kv_page_tokens>;
    using sum_rows = regular<float, tile_lanes>;
    static constexpr auto tiles = make_tiles<tile_vectors,
                                             strided<const Held>,
                                             weight_rows,
                                             sum_rows,
                                             nothing_kept,
                                             fetch_coming>();
    const row_tiles cut{count};
    const auto bytes = fetched_a_step(coming, cut.count() * lane_tiles_ * seen.size());
    for (std::size_t t = 0; t < cut.count(); ++t)
      for (std::size_t part = 0; part < lane_tiles_; ++part) {
        const auto q = first + cut.first(t);
        tiles[cut.height(t) - 1]({values + seen.begin * head_dim_ + part * tile_lanes, head_dim_},
                                 seen.size(),
                                 {scores_ + q * kv_page_tokens + seen.begin},
                                 {sums_of(q, part)},
                                 true,
                                 part_of(coming, bytes, t * lane_tiles_ + part, seen.size()),
                                 {});
      }
  }

  float* sums_of(std::size_t q, std::size_t part) const {
    return sums_ + (part * queries_ + q) * tile_lanes;
  }

  /// Scores of one query -> p, with the running maximum; earlier sums and totals are rescaled.
  void weigh(std::size_t q, range seen) {
    const lanes d;
    const hn::RebindToSigned<lanes> integer;
    constexpr auto vectors = kv_page_tokens / lane_count;
    float* scores = scores_ + q * kv_page_tokens;
    float* totals = totals_ + q * kv_page_tokens;
    const auto below = hn::Set(integer, static_cast<int>(seen.begin) - 1);
    const auto end = hn::Set(integer, static_cast<int>(seen.end));
    const auto scale = hn::Set(d, job_.call->scale);
    const auto nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
    vector score[vectors];
    auto highest = nothing;
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto key = hn::Iota(integer, static_cast<int>(v * lane_count));
      const auto sees = hn::And(hn::Gt(key, below), hn::Lt(key, end));
      const auto value = hn::Mul(hn::LoadU(d, scores + v * lane_count), scale);
      score[v] = hn::IfThenElse(hn::RebindMask(d, sees), value, nothing);
      highest = hn::Max(highest, score[v]);
    }
    const float before = largest_[q];
    const float maximum = std::max(before, hn::GetLane(hn::MaxOfLanes(d, highest)));
    largest_[q] = maximum;
    const auto shift = hn::Set(d, maximum);
    // exp(0) is exactly 1, so leaving it out while the maximum stays does not change a bit.
    const bool rises = !(maximum == before);
    const auto decay =
      rises ? exponential(d, hn::Sub(hn::Set(d, before), shift)) : hn::Set(d, 1.0f);
    for (std::size_t v = 0; v < vectors; ++v) {
      // exp(-infinity) is 0: that is what masked keys get, unless the maximum is not finite.
      const auto p = exponential(d, hn::Sub(score[v], shift));
      hn::StoreU(p, d, scores + v * lane_count);
      const auto total = hn::LoadU(d, totals + v * lane_count);
      hn::StoreU(hn::MulAdd(total, decay, p), d, totals + v * lane_count);
    }
    if (!rises)
      return;
    for (std::size_t part = 0; part < lane_tiles_; ++part)
      for (std::size_t i = 0; i < tile_lanes; i += lane_count) {
        float* sums = sums_of(q, part) + i;
        hn::StoreU(hn::Mul(hn::LoadU(d, sums), decay), d, sums);
      }
  }

  void finish() {
    const auto heads = block_.heads.size();
    for (std::size_t q = 0; q < queries_; ++q) {
      float* totals = totals_ + q * kv_page_tokens;
      for (auto half = kv_page_tokens / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i)
          totals[i] += totals[i + half];
      const auto row = block_.sequence->first_row + block_.first + q / heads;
      float* out = job_.out.row(row) + block_.heads[q % heads] * head_dim_;
      for (std::size_t i = 0; i < head_dim_; ++i)
        out[i] = sums_of(q, i / tile_lanes)[i % tile_lanes] / totals[0];
    }
  }

  const attention_job& job_;
  const attention_block& block_;
  std::size_t queries_;
  std::size_t head_dim_;
  row_tiles cut_;          ///< Of the queries.
  std::size_t lane_tiles_; ///< That cover head_dim.
  float* sums_;            ///< [lane tile][queries][tile_lanes]
  float* scores_;          ///< [queries][32]
  float* totals_;          ///< [queries][32]
  float* inputs_;          ///< Tile by tile: [head_dim][rows of the tile]
  float* largest_;         ///< [queries]
};

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
