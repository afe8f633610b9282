// Row-major sources -> panels. A block of 32 rows by some columns is converted into a small buffer
// in row order (the order in which a source is stored) and leaves it in panel order. A panel may
// have rows of several sources.

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

/// Finds the element of a row that made convert() fail, and keeps the first one of the matrix.
template <class Stored, class Held>
void report(pack_job& job, const std::byte* stored, std::size_t count, std::uint64_t first) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = to_float(load_element<Stored>(stored, i));
    if (!std::isfinite(value) || std::isfinite(to_float(from_float<Held>(value))))
      continue;
    auto known = job.too_large.load();
    while (first + i < known && !job.too_large.compare_exchange_weak(known, first + i)) {
    }
    return;
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

void pack_share(pack_job& job, range panels) {
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
                      hold == dtype::f16 ? " or bf16" : "")};
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
  auto memory = on.weights.take(padded_rows * columns * size_of(hold), "a packed weight");
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
