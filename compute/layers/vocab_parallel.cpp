#include "compute/layers/vocab_parallel.hpp"

#include "config/topology.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
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

/// The members' rows of the vocabulary.
std::vector<range> parts_of(std::size_t vocabulary, std::size_t members) {
  std::vector<range> parts;
  for (std::size_t member = 0; member < members; ++member)
    parts.push_back(split_part(vocabulary, members, member));
  return parts;
}

/// Candidates that a rank with so many rows of the vocabulary has of a row: all, if it has fewer.
std::size_t share(std::uint32_t wanted, std::size_t part) {
  return std::min<std::size_t>(wanted, part);
}

/// Stands for the candidates of a part with a logit that is no finite number.
token_candidates not_finite(std::size_t count) {
  token_candidates made;
  made.ids.resize(count);
  std::iota(made.ids.begin(), made.ids.end(), token_id{0});
  made.logits.assign(count, std::numeric_limits<float>::quiet_NaN());
  return made;
}

/// Moves the rows of which all logits are wanted together, to the front.
tensor whole_rows(tensor local, std::span<const std::uint32_t> wanted) {
  std::size_t kept = 0;
  for (std::size_t row = 0; row < local.rows; ++row) {
    if (wanted[row] > 0)
      continue;
    if (kept != row)
      std::copy_n(local.row(row), local.columns, local.row(kept));
    ++kept;
  }
  return {local.data, kept, local.columns};
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

result<void> vocab_head::forward(tensor x,
                                 std::span<const std::uint32_t> wanted,
                                 tensor logits,
                                 std::span<token_candidates> found,
                                 collective& group) {
  if (group.size() == 1) {
    check(logits.rows == x.rows, "a group of one has whole logits");
    where_->matmul(*rows_, x, {}, logits, {});
    return {};
  }
  auto memory = room(*where_, local_, x.rows * rows_->rows());
  if (!memory)
    return memory.error();
  const tensor local(*memory, x.rows, rows_->rows());
  where_->matmul(*rows_, x, {}, local, {});
  where_->synchronise();
  if (logits.rows < x.rows)
    if (auto done = exchange(local, wanted, found, group); !done)
      return done;
  if (logits.rows == 0)
    return {};
  return gather(whole_rows(local, wanted), logits, group);
}

/// Row by row this rank's candidates, each as its logit and the bits of its id.
std::vector<float>
vocab_head::pick(tensor local, std::span<const std::uint32_t> wanted, token_id first) {
  const auto finite = std::make_unique<bool[]>(local.rows);
  where_->find_finite(local, {finite.get(), local.rows});
  where_->synchronise();
  std::vector<float> picked;
  for (std::size_t row = 0; row < local.rows; ++row) {
    const auto best = finite[row] ? find_candidates({local.row(row), local.columns}, wanted[row])
                                  : not_finite(share(wanted[row], local.columns));
    for (std::size_t i = 0; i < best.ids.size(); ++i) {
      picked.push_back(best.logits[i]);
      picked.push_back(std::bit_cast<float>(first + best.ids[i]));
    }
  }
  return picked;
}

result<void> vocab_head::exchange(tensor local,
                                  std::span<const std::uint32_t> wanted,
                                  std::span<token_candidates> found,
                                  collective& group) {
  const auto parts = parts_of(vocabulary_, group.size());
  std::vector<std::size_t> counts;
  for (const auto& part : parts) {
    std::size_t pairs = 0;
    for (const auto candidates : wanted)
      pairs += share(candidates, part.size());
    counts.push_back(2 * pairs);
  }
  const auto mine = pick(local, wanted, static_cast<token_id>(parts[group.rank()].begin));
  std::vector<float> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  if (auto done = group.all_gather(mine, counts, all); !done)
    return done;
  auto next = all.begin();
  for (const auto& part : parts) // of ascending ids
    for (std::size_t row = 0; row < local.rows; ++row)
      for (auto left = share(wanted[row], part.size()); left > 0; --left) {
        found[row].logits.push_back(*next++);
        found[row].ids.push_back(std::bit_cast<token_id>(*next++));
      }
  return {};
}

result<void> vocab_head::gather(tensor local, tensor logits, collective& group) {
  const auto rows = local.rows;
  const auto parts = parts_of(vocabulary_, group.size());
  std::vector<std::size_t> counts;
  for (const auto& part : parts)
    counts.push_back(rows * part.size());
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
