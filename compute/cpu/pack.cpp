// Row-major sources -> panels. A block of 32 rows by some columns is converted into a small buffer
// in row order (the order in which a source is stored) and leaves it in panel order. A panel may
// have rows of several sources.

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/half.hpp"
#include "compute/cpu/panels.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace troupe::compute::cpu {

namespace {

constexpr std::size_t block_columns = 64;
constexpr auto nothing = std::numeric_limits<std::uint64_t>::max();

struct pack_job {
  std::span<const weight_source> sources;
  const panel_matrix* made;
  std::atomic<std::uint64_t> too_large = nothing; ///< First element that does not fit, row-major.
};

/// A row of the weight in the source that has it.
struct source_row {
  const weight_source* source;
  std::size_t row;

  const std::byte* at(std::size_t column) const {
    return source->data + (row * source->stride + column) * size_of(source->stored);
  }
};

source_row find_row(std::span<const weight_source> sources, std::size_t row) {
  for (const auto& source : sources) {
    if (row < source.rows)
      return {&source, row};
    row -= source.rows;
  }
  return {nullptr, 0};
}

template <class Stored, class Held>
bool convert(const std::byte* stored, std::size_t count, Held* held) {
  if constexpr (std::is_same_v<Stored, Held>) {
    std::memcpy(held, stored, count * sizeof(Held));
    return true;
  } else {
    bool fits = true;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = to_float(load_element<Stored>(stored, i));
      held[i] = from_float<Held>(value);
      // Only 32 -> 16 bits and bf16 -> f16 can overflow.
      if constexpr (!std::is_same_v<Held, float>)
        fits &= std::isfinite(to_float(held[i])) || !std::isfinite(value);
    }
    return fits;
  }
}

/// Keeps the first element of the matrix that does not fit.
void report_element(pack_job& job, std::uint64_t element) {
  auto known = job.too_large.load();
  while (element < known && !job.too_large.compare_exchange_weak(known, element)) {
  }
}

/// Finds the element of a row that made convert() fail, and reports it.
template <class Stored, class Held>
void report(pack_job& job, const std::byte* stored, std::size_t count, std::uint64_t first) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = to_float(load_element<Stored>(stored, i));
    if (!std::isfinite(value) || std::isfinite(to_float(from_float<Held>(value))))
      continue;
    return report_element(job, first + i);
  }
}

template <class Held>
void pack_panel(pack_job& job, std::size_t panel) {
  const auto first_row = panel * panel_width;
  const auto columns = job.made->columns();
  const auto rows = std::min(panel_width, job.made->rows() - first_row);
  auto* out = reinterpret_cast<Held*>(job.made->panel(panel));
  source_row from[panel_width];
  for (std::size_t row = 0; row < rows; ++row)
    from[row] = find_row(job.sources, first_row + row);
  Held block[panel_width][block_columns] = {};
  for (std::size_t begin = 0; begin < columns; begin += block_columns) {
    const auto count = std::min(block_columns, columns - begin);
    for (std::size_t row = 0; row < rows; ++row)
      with_format(from[row].source->stored, [&](auto format) {
        using stored = decltype(format);
        const auto* at = from[row].at(begin);
        if (!convert<stored>(at, count, block[row]))
          report<stored, Held>(job, at, count, (first_row + row) * columns + begin);
      });
    for (std::size_t column = 0; column < count; ++column)
      for (std::size_t row = 0; row < panel_width; ++row)
        out[(begin + column) * panel_width + row] = block[row][column];
  }
}

/// The same in blocks. A weight that is not finite has no place in one, nor has a block whose scale
/// would not be.
void pack_panel_blocks(pack_job& job, std::size_t panel) {
  const auto first_row = panel * panel_width;
  const auto columns = job.made->columns();
  const auto held = job.made->held();
  const auto rows = std::min(panel_width, job.made->rows() - first_row);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto from = find_row(job.sources, first_row + row);
    auto* block = job.made->panel(panel);
    for (std::size_t begin = 0; begin < columns;
         begin += quantised_block, block += panel_block_bytes(held)) {
      float values[quantised_block];
      const auto count = std::min(quantised_block, columns - begin);
      const auto* at = from.at(begin);
      with_format(from.source->stored, [&](auto format) {
        using stored = decltype(format);
        convert<stored>(at, count, values);
      });
      const bool finite =
        std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
      const auto made = finite ? quantise({values, count}, held) : quantised_row{};
      if (finite && std::isfinite(made.scale) && std::isfinite(made.minimum))
        put_row(block, held, row, made);
      else
        report_element(job, (first_row + row) * columns + begin);
    }
  }
}

void pack_share(pack_job& job, range panels) {
  if (is_quantised(job.made->held())) {
    for (auto panel = panels.begin; panel < panels.end; ++panel)
      pack_panel_blocks(job, panel);
    return;
  }
  with_format(job.made->held(), [&](auto held) {
    for (auto panel = panels.begin; panel < panels.end; ++panel)
      pack_panel<decltype(held)>(job, panel);
  });
}

error too_large(const pack_job& job, std::uint64_t element) {
  const auto hold = job.made->held();
  const auto where = find_row(job.sources, element / job.made->columns());
  return {errc::invalid_model,
          fmt::format("{}element [{}, {}] is too large to be held in {}: hold the weights in f32{}",
                      where.source->name.empty() ? "" : where.source->name + ": ",
                      where.row,
                      element % job.made->columns(),
                      to_string(hold),
                      hold == dtype::bf16 ? "" : " or bf16")};
}

} // namespace

result<std::unique_ptr<panel_matrix>>
pack_panels(execution& on, std::span<const weight_source> sources, dtype hold) {
  check(!sources.empty(), "a weight has a source");
  const auto columns = sources.front().columns;
  std::size_t rows = 0;
  for (const auto& source : sources) {
    check(source.rows > 0 && source.columns > 0, "a weight has rows and columns");
    check(source.columns == columns, "sources of one weight have the same columns");
    check(source.stride >= source.columns, "rows of a weight do not overlap");
    rows += source.rows;
  }
  const auto padded_rows = (rows + panel_width - 1) / panel_width * panel_width;
  auto memory = on.weights.take(held_bytes(hold, padded_rows, columns), "a packed weight");
  if (!memory)
    return memory.error();
  auto made = std::make_unique<panel_matrix>(rows, columns, hold, std::move(*memory));
  pack_job job{.sources = sources, .made = made.get()};
  on.run(padded_rows * columns, [&](std::size_t thread, std::size_t threads) {
    // The split of matmul: the thread that packs a panel is the one that will read it.
    pack_share(job, split_part(made->panels(), threads, thread));
  });
  if (const auto wrong = job.too_large.load(); wrong != nothing)
    return too_large(job, wrong);
  return made;
}

} // namespace troupe::compute::cpu
