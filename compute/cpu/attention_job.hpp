#pragma once
// One attention call, cut into blocks that threads take one by one.

#include "compute/cpu/execution.hpp"
#include "compute/cpu/kv_pages.hpp"

#include <atomic>
#include <span>
#include <vector>

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
