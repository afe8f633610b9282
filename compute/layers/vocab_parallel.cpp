#include "compute/layers/vocab_parallel.hpp"

#include "config/topology.hpp"

#include <algorithm>
#include <vector>

namespace troupe::compute {
namespace {

/// Room for `count` floats, kept from call to call.
result<float*> room(device& where, buffer& memory, std::size_t count) {
  if (memory.size() < count * sizeof(float)) {
    auto larger = where.allocate(count * sizeof(float));
    if (!larger)
      return larger.error();
    memory = *std::move(larger);
  }
  return memory.as<float>().data();
}

} // namespace

vocab_embedding::vocab_embedding(device& where, std::shared_ptr<const matrix> rows, token_id first)
  : where_(&where), rows_(std::move(rows)), first_(first) {}

result<void>
vocab_embedding::forward(std::span<const token_id> tokens, tensor out, collective& group) const {
  where_->embed(*rows_, tokens, first_, out);
  if (group.size() == 1)
    return {};
  where_->synchronise();
  return group.all_reduce_sum({out.data, out.rows * out.columns});
}

vocab_head::vocab_head(device& where, std::shared_ptr<const matrix> rows, std::size_t vocabulary)
  : where_(&where), rows_(std::move(rows)), vocabulary_(vocabulary) {}

result<void> vocab_head::forward(tensor x, tensor logits, collective& group) {
  if (group.size() == 1) {
    where_->matmul(*rows_, x, {}, logits, {});
    return {};
  }
  auto memory = room(*where_, local_, x.rows * rows_->rows());
  if (!memory)
    return memory.error();
  const tensor local(*memory, x.rows, rows_->rows());
  where_->matmul(*rows_, x, {}, local, {});
  where_->synchronise();
  return gather(local, logits, group);
}

result<void> vocab_head::gather(tensor local, tensor logits, collective& group) {
  const auto rows = local.rows;
  std::vector<range> parts;
  std::vector<std::size_t> counts;
  for (std::size_t member = 0; member < group.size(); ++member) {
    parts.push_back(split_part(vocabulary_, group.size(), member));
    counts.push_back(rows * parts.back().size());
  }
  const std::span<const float> mine(local.data, rows * local.columns);
  if (rows == 1) // the parts of one row, one after the other, are the row
    return group.all_gather(mine, counts, {logits.data, vocabulary_});
  auto memory = room(*where_, gathered_, rows * vocabulary_);
  if (!memory)
    return memory.error();
  if (auto done = group.all_gather(mine, counts, {*memory, rows * vocabulary_}); !done)
    return done;
  const float* from = *memory;
  for (const auto& part : parts)
    for (std::size_t row = 0; row < rows; ++row, from += part.size())
      std::copy_n(from, part.size(), logits.row(row) + part.begin);
  return {};
}

} // namespace troupe::compute
