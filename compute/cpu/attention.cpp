// Causal attention over pages of keys and values: the cut of a call into blocks of rows and heads.
// The arithmetic, and its order, is in attention_block-inl.hpp.

#include "compute/cpu/attention_job.hpp"
#include "compute/cpu/operations.hpp"

#include <algorithm>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/attention.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/attention_block-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// Takes blocks until none is left.
void attend_blocks(attention_job& job, std::size_t thread) {
  with_format(job.cache->shape().held, [&](auto format) {
    for (auto i = job.next.fetch_add(1); i < job.blocks.size(); i = job.next.fetch_add(1)) {
      block_state<decltype(format)>(job, job.blocks[i], job.on->each[thread]).attend();
      job.on->beat();
    }
  });
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
