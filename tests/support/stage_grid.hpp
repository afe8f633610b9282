#pragma once
// One model run in this process as a grid of partitions: pipeline stages one after the other, and
// the tensor-parallel ranks of a stage as threads. What the actors do with messages, by plain
// calls.

#include "compute/batch.hpp"
#include "compute/device.hpp"
#include "compute/model.hpp"
#include "compute/partition.hpp"
#include "tests/support/thread_group.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::tests {

using logits_rows = std::vector<std::vector<float>>;

class stage_grid {
public:
  struct options {
    std::size_t stages = 1;
    std::size_t tensor = 1;
    compute::held_types hold = dtype::f32;
    std::size_t pages = 64;
    std::size_t threads = 1; ///< Of each device.
  };

  /// Loads everything; ends the test when that fails.
  stage_grid(std::shared_ptr<const compute::model> source, const options& wanted);

  stage_grid(const std::shared_ptr<const compute::model>& source) : stage_grid(source, options{}) {}

  /// Runs one step through all stages. Requires that every rank of a stage has the same hidden
  /// values and the same output, bit for bit (rules 24 and 32), and that all of it is finite.
  compute::final_output run(const compute::batch& rows, const std::vector<token_id>& tokens);

  /// The whole logits of the rows that want output, of which none asks for candidates.
  logits_rows step(const compute::batch& rows, const std::vector<token_id>& tokens);

  std::size_t vocabulary() const { return source_->shape().vocabulary; }

  /// Calls of the collectives of a stage, as its first rank made them.
  const collective_counts& counts(std::size_t stage) const {
    return stages_[stage].group->counts();
  }

  compute::partition& rank(std::size_t stage, std::size_t tensor) {
    return *stages_[stage].ranks[tensor].loaded;
  }

private:
  struct rank_parts {
    std::unique_ptr<compute::device> where;
    std::unique_ptr<compute::collective> group;
    std::unique_ptr<compute::partition> loaded;
    compute::partition_state state;
  };

  struct stage_parts {
    std::unique_ptr<thread_group> group;
    std::vector<rank_parts> ranks;
  };

  rank_parts load_rank(const compute::partition_record& record, thread_group& group) const;

  std::shared_ptr<const compute::model> source_;
  options wanted_;
  std::vector<stage_parts> stages_;
};

/// A text that grows: its tokens and its pages.
class growing_text {
public:
  /// Pages first_page, first_page + 1 ... hold its state.
  growing_text(std::vector<token_id> prompt, std::uint32_t first_page);

  /// Rows for the next `count` tokens that have not been run; appended to a batch.
  void add_rows(std::size_t count, compute::batch& rows, std::vector<token_id>& tokens);

  std::size_t waiting() const { return tokens_.size() - done_; }

  void append(token_id token) { tokens_.push_back(token); }

  const std::vector<token_id>& tokens() const { return tokens_; }

private:
  std::vector<token_id> tokens_;
  std::uint32_t first_page_;
  std::size_t done_ = 0;
};

/// The first of the largest values.
token_id argmax(const std::vector<float>& logits);

/// Runs a prompt in chunks of at most `chunk` rows; gives the logits after each chunk.
logits_rows run_prompt(stage_grid& grid, growing_text& text, std::size_t chunk);

/// What greedy decoding of `count` tokens gives, with the logits that chose each.
struct greedy_run {
  std::vector<token_id> ids;
  logits_rows logits;
};

greedy_run run_greedy(stage_grid& grid,
                      const std::vector<token_id>& prompt,
                      std::size_t chunk,
                      std::size_t count);

} // namespace troupe::tests
