// Look-ups: a row of a table is contiguous; a row of a packed weight is one lane of a panel.

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/half.hpp"
#include "compute/cpu/operations.hpp"

#include <algorithm>

namespace troupe::compute::cpu {

namespace {

/// count elements, `step` apart, as f32.
template <class Stored>
void copy_row(const std::byte* from, std::size_t step, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = to_float(load_element<Stored>(from, i * step));
}

/// The same from blocks of a panel.
void copy_blocks(const panel_matrix& weights, std::size_t row, float* to) {
  const auto* blocks = weights.panel(row / panel_width);
  for (std::size_t i = 0; i < weights.columns(); ++i)
    to[i] = read_value(blocks + i / quantised_block * panel_block_bytes(weights.held()),
                       weights.held(),
                       row % panel_width,
                       i % quantised_block);
}

void look_up(const matrix& weights, std::size_t row, float* to) {
  const auto* panels = dynamic_cast<const panel_matrix*>(&weights);
  const auto* table = dynamic_cast<const row_table*>(&weights);
  check(panels != nullptr || table != nullptr, "embed: the weight was made by this device");
  if (is_quantised(weights.held()))
    return copy_blocks(*panels, row, to);
  with_format(weights.held(), [&](auto stored) {
    using format = decltype(stored);
    if (table != nullptr)
      copy_row<format>(table->row(row), 1, weights.columns(), to);
    else
      copy_row<format>(panels->panel(row / panel_width) + row % panel_width * sizeof(format),
                       panel_width,
                       weights.columns(),
                       to);
  });
}

} // namespace

void embed(
  execution& on, const matrix& weights, std::span<const token_id> ids, token_id first, tensor out) {
  check(out.rows == ids.size() && out.columns == weights.columns(), "embed: out is [ids, columns]");
  on.run(out.rows * out.columns, [&](std::size_t thread, std::size_t threads) {
    const auto rows = split_part(out.rows, threads, thread);
    for (auto row = rows.begin; row < rows.end; ++row) {
      if (ids[row] >= first && ids[row] - first < weights.rows())
        look_up(weights, ids[row] - first, out.row(row));
      else
        std::fill_n(out.row(row), out.columns, 0.0f);
    }
  });
}

} // namespace troupe::compute::cpu
