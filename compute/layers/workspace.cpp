#include "compute/layers/workspace.hpp"

namespace troupe::compute {
namespace {

/// Tensors start on cache lines of their own.
std::size_t padded(std::size_t floats) {
  return (floats + 15) / 16 * 16;
}

} // namespace

std::array<std::size_t, workspace::tensors> workspace::widths() const {
  const auto& w = widths_;
  return {w.hidden, w.hidden, w.hidden, w.queries + 2 * w.keys, w.queries, 2 * w.ffn};
}

result<void> workspace::reserve(std::size_t rows) {
  if (rows <= rows_)
    return {};
  std::size_t floats = 0;
  for (const auto width : widths())
    floats += padded(width * rows);
  auto memory = where_->allocate(floats * sizeof(float));
  if (!memory)
    return memory.error();
  memory_ = *std::move(memory);
  rows_ = rows;
  return {};
}

tensor workspace::view(std::size_t which, std::size_t rows) const {
  check(rows <= rows_, "a pass uses no more rows than were reserved");
  const auto all = widths();
  std::size_t first = 0;
  for (std::size_t i = 0; i < which; ++i)
    first += padded(all[i] * rows_);
  return {memory_.as<float>().data() + first, rows, all[which]};
}

} // namespace troupe::compute
