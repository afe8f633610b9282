// Row-major source -> panels. A block of 32 rows by some columns is converted into a small buffer
// in row order (the order in which the source is stored) and leaves it in panel order.

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
  const weight_source* source;
  const panel_matrix* made;
  std::atomic<std::uint64_t> too_large = nothing; ///< First element that does not fit, row-major.
};

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

template <class Stored, class Held>
void pack_panel(pack_job& job, std::size_t panel) {
  const auto& source = *job.source;
  const auto first_row = panel * panel_width;
  const auto rows = std::min(panel_width, source.rows - first_row);
  auto* out = reinterpret_cast<Held*>(job.made->panel(panel));
  Held block[panel_width][block_columns] = {};
  for (std::size_t begin = 0; begin < source.columns; begin += block_columns) {
    const auto count = std::min(block_columns, source.columns - begin);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto element = (first_row + row) * source.stride + begin;
      const auto* stored = source.data + element * sizeof(Stored);
      if (!convert<Stored>(stored, count, block[row]))
        report<Stored, Held>(job, stored, count, (first_row + row) * source.columns + begin);
    }
    for (std::size_t column = 0; column < count; ++column)
      for (std::size_t row = 0; row < panel_width; ++row)
        out[(begin + column) * panel_width + row] = block[row][column];
  }
}

void pack_share(pack_job& job, range panels) {
  with_format(job.source->stored, [&](auto stored) {
    with_format(job.made->held(), [&](auto held) {
      for (auto panel = panels.begin; panel < panels.end; ++panel)
        pack_panel<decltype(stored), decltype(held)>(job, panel);
    });
  });
}

} // namespace

result<std::unique_ptr<panel_matrix>>
pack_panels(execution& on, const weight_source& source, dtype hold) {
  check(source.rows > 0 && source.columns > 0, "a weight has rows and columns");
  check(source.stride >= source.columns, "rows of a weight do not overlap");
  const auto padded_rows = (source.rows + panel_width - 1) / panel_width * panel_width;
  auto memory = map_memory(padded_rows * source.columns * size_of(hold), "a packed weight");
  if (!memory)
    return memory.error();
  auto made = std::make_unique<panel_matrix>(source.rows, source.columns, hold, std::move(*memory));
  pack_job job{.source = &source, .made = made.get()};
  on.run(padded_rows * source.columns, [&](std::size_t thread, std::size_t threads) {
    // The split of matmul: the thread that packs a panel is the one that will read it.
    pack_share(job, split_part(made->panels(), threads, thread));
  });
  const auto wrong = job.too_large.load();
  if (wrong != nothing)
    return error{errc::invalid_model,
                 fmt::format("element [{}, {}] is too large to be held in {}: hold the weights in "
                             "f32{}",
                             wrong / source.columns,
                             wrong % source.columns,
                             to_string(hold),
                             hold == dtype::f16 ? " or bf16" : "")};
  return made;
}

} // namespace troupe::compute::cpu
