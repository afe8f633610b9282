// Causal attention over pages of keys and values. For one row and head the pages of its visible
// positions are taken in ascending order, with a running maximum:
//   scores = one chain over head_dim for each of the 32 keys;  p = exp(score - maximum), 0 if
//   masked totals (one a key lane) = totals * c + p;  sums = sums * c, then + p * value, key by key
// where c = exp(old maximum - new maximum). At the end the 32 totals are added pairwise. This order
// is the same alone, in a batch and in a chunk of any size. Rows of one sequence, and heads that
// share a key/value head, go through a page together, so that it is read once for all of them.
// Positions that a row may not see never enter its arithmetic: their memory may hold anything.

#include "compute/cpu/operations.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/exponential-inl.hpp"
#include "compute/cpu/tile-inl.hpp"

#ifndef TROUPE_COMPUTE_CPU_ATTENTION_JOB
#define TROUPE_COMPUTE_CPU_ATTENTION_JOB

namespace troupe::compute::cpu {

/// Rows [first, first + rows) of one sequence under one key/value head.
struct attention_block {
  const sequence_rows* sequence;
  std::span<const std::uint32_t> heads; ///< Query heads that share the key/value head.
  std::size_t kv_head;
  std::size_t first; ///< Counted within the sequence.
  std::size_t rows;
};

struct attention_job {
  execution* on;
  const kv_pages* cache;
  const attention_call* call;
  tensor queries;
  tensor out;
  std::vector<attention_block> blocks;
  std::atomic<std::size_t> next = 0; ///< Blocks differ in length: threads take them one by one.
};

} // namespace troupe::compute::cpu

#endif

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace {

constexpr std::size_t round_up(std::size_t count, std::size_t step) {
  return (count + step - 1) / step * step;
}

/// The working state of one block: query q = row * heads + head has the q-th part of each array.
class block_state {
public:
  block_state(const attention_job& job, const attention_block& block, scratch& memory)
    : job_(job), block_(block), queries_(block.rows * block.heads.size()),
      head_dim_(job.call->head_dim), stride_(round_up(head_dim_, tile_lanes)) {
    float* room = memory.floats(queries_ * (head_dim_ + stride_ + 2 * kv_page_tokens + 1));
    sums_ = room;
    scores_ = sums_ + queries_ * stride_;
    totals_ = scores_ + queries_ * kv_page_tokens;
    inputs_ = totals_ + queries_ * kv_page_tokens;
    largest_ = inputs_ + queries_ * head_dim_;
  }

  void attend() {
    gather();
    const auto last = position(block_.rows - 1);
    for (auto page = visible(0).begin / kv_page_tokens; page <= last / kv_page_tokens; ++page)
      walk_page(page);
    finish();
  }

private:
  std::size_t position(std::size_t row) const {
    return block_.sequence->position + block_.first + row;
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
    for (std::size_t q = 0; q < queries_; ++q) {
      const auto row = block_.sequence->first_row + block_.first + q / heads;
      std::copy_n(job_.queries.row(row) + block_.heads[q % heads] * head_dim_,
                  head_dim_,
                  inputs_ + q * head_dim_);
    }
    std::fill_n(sums_, queries_ * stride_, 0.0f);
    std::fill_n(totals_, queries_ * kv_page_tokens, 0.0f);
    std::fill_n(largest_, queries_, -std::numeric_limits<float>::infinity());
  }

  void walk_page(std::size_t page) {
    const auto id = block_.sequence->pages[page];
    const float* keys = job_.cache->keys(job_.call->layer, id, block_.kv_head);
    const float* values = job_.cache->values(job_.call->layer, id, block_.kv_head);
    const auto heads = block_.heads.size();
    multiply(keys,
             kv_page_tokens,
             head_dim_,
             kv_page_tokens,
             inputs_,
             head_dim_,
             queries_,
             scores_,
             kv_page_tokens,
             false);
    bool whole = true;
    for (std::size_t row = 0; row < block_.rows; ++row) {
      const auto seen = visible(row, page);
      whole &= seen.size() == kv_page_tokens;
      for (std::size_t head = 0; head < heads && seen.size() > 0; ++head)
        weigh(row * heads + head, seen);
    }
    if (whole) {
      add_values(values, {0, kv_page_tokens}, 0, queries_);
      return;
    }
    for (std::size_t row = 0; row < block_.rows; ++row)
      if (const auto seen = visible(row, page); seen.size() > 0)
        add_values(values, seen, row * heads, heads);
  }

  /// sums of queries [first, first + count) += p * value over the keys `seen`.
  void add_values(const float* values, range seen, std::size_t first, std::size_t count) {
    multiply(values + seen.begin * head_dim_,
             head_dim_,
             seen.size(),
             head_dim_,
             scores_ + first * kv_page_tokens + seen.begin,
             kv_page_tokens,
             count,
             sums_ + first * stride_,
             stride_,
             true);
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
    const auto decay = exponential(d, hn::Sub(hn::Set(d, before), shift));
    for (std::size_t v = 0; v < vectors; ++v) {
      // exp(-infinity) is 0: that is what masked keys get, unless the maximum is not finite.
      const auto p = exponential(d, hn::Sub(score[v], shift));
      hn::StoreU(p, d, scores + v * lane_count);
      const auto total = hn::LoadU(d, totals + v * lane_count);
      hn::StoreU(hn::MulAdd(total, decay, p), d, totals + v * lane_count);
    }
    if (maximum == before)
      return; // decay is 1
    for (std::size_t i = 0; i < stride_; i += lane_count)
      hn::StoreU(hn::Mul(hn::LoadU(d, sums_ + q * stride_ + i), decay), d, sums_ + q * stride_ + i);
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
        out[i] = sums_[q * stride_ + i] / totals[0];
    }
  }

  const attention_job& job_;
  const attention_block& block_;
  std::size_t queries_;
  std::size_t head_dim_;
  std::size_t stride_; ///< Of sums: head_dim in whole tiles.
  float* sums_;        ///< [queries][stride]
  float* scores_;      ///< [queries][32]
  float* totals_;      ///< [queries][32]
  float* inputs_;      ///< [queries][head_dim]
  float* largest_;     ///< [queries]
};

} // namespace

/// Takes blocks until none is left.
void attend_blocks(attention_job& job, std::size_t thread) {
  for (auto i = job.next.fetch_add(1); i < job.blocks.size(); i = job.next.fetch_add(1))
    block_state(job, job.blocks[i], job.on->each[thread]).attend();
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(attend_blocks);

namespace {

/// Queries (rows times heads) that go through a page together: enough to reuse it from the
/// first-level cache, few enough that little of a block's last pages is masked.
constexpr std::size_t block_queries = 48;
constexpr std::size_t most_block_rows = 32;

/// Query heads in the order of their key/value heads.
class head_groups {
public:
  explicit head_groups(const attention_call& call) : first_(call.kv_heads + 1, 0) {
    for (std::size_t kv_head = 0; kv_head < call.kv_heads; ++kv_head) {
      for (std::size_t head = 0; head < call.heads; ++head)
        if (call.kv_head_of[head] == kv_head)
          heads_.push_back(static_cast<std::uint32_t>(head));
      first_[kv_head + 1] = heads_.size();
    }
    check(heads_.size() == call.heads, "attention: each head has a key/value head of this rank");
  }

  std::span<const std::uint32_t> of(std::size_t kv_head) const {
    return std::span(heads_).subspan(first_[kv_head], first_[kv_head + 1] - first_[kv_head]);
  }

private:
  std::vector<std::uint32_t> heads_;
  std::vector<std::size_t> first_;
};

void add_blocks(const sequence_rows& sequence,
                const head_groups& groups,
                std::size_t kv_heads,
                std::vector<attention_block>& blocks) {
  check(sequence.pages.size() * kv_page_tokens >= sequence.position + sequence.count,
        "attention: a sequence has pages for its positions");
  for (std::size_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
    const auto heads = groups.of(kv_head);
    if (heads.empty())
      continue;
    const auto rows = std::clamp<std::size_t>(block_queries / heads.size(), 1, most_block_rows);
    for (std::size_t first = 0; first < sequence.count; first += rows)
      blocks.push_back({.sequence = &sequence,
                        .heads = heads,
                        .kv_head = kv_head,
                        .first = first,
                        .rows = std::min<std::size_t>(rows, sequence.count - first)});
  }
}

/// Multiply-adds of a call, roughly.
std::size_t work_of(const attention_call& call, const batch& rows) {
  std::size_t pairs = 0;
  for (const auto& sequence : rows.sequences)
    pairs += sequence.count * (std::size_t{sequence.position} + sequence.count);
  return pairs * call.heads * call.head_dim;
}

} // namespace

void attention(execution& on,
               const kv_pages& cache,
               const attention_call& call,
               const batch& rows,
               tensor queries,
               tensor out) {
  const auto columns = call.heads * call.head_dim;
  check(queries.columns == columns && out.columns == columns, "attention: columns of all heads");
  check(queries.rows == rows.rows() && out.rows == rows.rows(), "attention: rows of the batch");
  check(call.head_dim == cache.shape().head_dim && call.kv_heads == cache.shape().kv_heads,
        "attention: the call has the heads of the cache");
  check(call.kv_head_of.size() == call.heads, "attention: a key/value head for each head");
  const head_groups groups(call);
  attention_job job{
    .on = &on, .cache = &cache, .call = &call, .queries = queries, .out = out, .blocks = {}};
  for (const auto& sequence : rows.sequences)
    add_blocks(sequence, groups, call.kv_heads, job.blocks);
  // Late blocks see more keys: begin with the long ones.
  std::reverse(job.blocks.begin(), job.blocks.end());
  on.run(work_of(call, rows), [&](std::size_t thread, std::size_t) {
    HWY_DYNAMIC_DISPATCH(attend_blocks)(job, thread);
  });
}

} // namespace troupe::compute::cpu

#endif
