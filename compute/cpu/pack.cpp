// Row-major sources -> panels, slice by slice in the order in which the sources are stored: what a
// slice's watchers have seen is still in the cache when it is packed. A panel may have rows of
// several sources.

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/half.hpp"
#include "compute/cpu/pack_panel.hpp"
#include "compute/cpu/source_slices.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace troupe::compute::cpu {

namespace {

constexpr auto nothing = std::numeric_limits<std::uint64_t>::max();

/// What the threads of one packing share.
struct pack_job {
  std::span<const weight_source> sources;
  const panel_matrix* made;
  std::atomic<std::uint64_t> too_large = nothing; ///< First element that does not fit, row-major.
};

/// A row of the weight in the source that has it.
struct source_row {
  const weight_source* source;
  std::size_t row;

  const std::byte* data() const {
    return source->data + row * source->stride * size_of(source->stored);
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

panel_rows rows_of(const pack_job& job, std::size_t panel) {
  const auto first = panel * panel_width;
  panel_rows rows;
  rows.count = std::min(panel_width, job.made->rows() - first);
  rows.columns = job.made->columns();
  for (std::size_t row = 0; row < rows.count; ++row) {
    const auto from = find_row(job.sources, first + row);
    rows.row[row] = {from.data(), from.source->stored};
  }
  return rows;
}

/// Whether `held` has room for all of some values; those of blocks stand or fall together, and a
/// weight that is not finite has no place in one, nor has a block whose scale would not be.
bool fit(std::span<const float> values, dtype held) {
  if (!is_quantised(held))
    return with_format(held, [&](auto format) {
      return std::all_of(values.begin(), values.end(), [](float value) {
        return !std::isfinite(value)
               || std::isfinite(to_float(from_float<decltype(format)>(value)));
      });
    });
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    return false;
  const auto made = quantise(values, held);
  return std::isfinite(made.scale) && std::isfinite(made.minimum);
}

/// Column of the first element (of its block) of a row that does not fit, or none of the row's.
std::size_t find_unfit(const panel_rows& rows, std::size_t row, dtype held) {
  const auto step = is_quantised(held) ? quantised_block : 1;
  std::size_t begin = 0;
  for (; begin < rows.columns; begin += step) {
    float values[quantised_block];
    const auto count = std::min(step, rows.columns - begin);
    with_format(rows.row[row].stored, [&](auto stored) {
      for (std::size_t i = 0; i < count; ++i)
        values[i] = to_float(load_element<decltype(stored)>(rows.row[row].data, begin + i));
    });
    if (!fit({values, count}, held))
      break;
  }
  return std::min(begin, rows.columns);
}

/// Keeps the first element of the matrix that does not fit, of those of a panel that has one.
void report(pack_job& job, std::size_t panel, const panel_rows& rows) {
  std::size_t row = 0, column = rows.columns;
  while (column == rows.columns && row < rows.count)
    column = find_unfit(rows, row++, job.made->held());
  check(column < rows.columns, "a panel that cannot be held has an element that cannot");
  const std::uint64_t element = (panel * panel_width + row - 1) * rows.columns + column;
  auto known = job.too_large.load();
  while (element < known && !job.too_large.compare_exchange_weak(known, element)) {
  }
}

void pack_slice(pack_job& job, const range& rows) {
  const auto end = (rows.end + panel_width - 1) / panel_width;
  for (auto panel = rows.begin / panel_width; panel < end; ++panel) {
    const auto from = rows_of(job, panel);
    if (!pack_panel(from, job.made->held(), job.made->panel(panel)))
      report(job, panel, from);
  }
}

/// Makes the memory of some panels this thread's: a page lies near the thread that touches it
/// first.
void take_near(const panel_matrix& made, range panels) {
  constexpr std::size_t page = 4096;
  auto* const end = made.panel(panels.end);
  for (auto* at = made.panel(panels.begin); at < end; at += page)
    *static_cast<volatile std::byte*>(at) = std::byte{0};
}

/// Rows of a slice, whole panels: few enough to stay in a core's cache and to take little memory
/// with all that lies between them, and to leave every thread some of the slices.
std::size_t
slice_rows(std::span<const weight_source> sources, const panel_matrix& made, std::size_t threads) {
  constexpr std::size_t slice_bytes = std::size_t{1} << 20;
  const auto panel_bytes = panel_width * sources.front().stride * size_of(sources.front().stored);
  const auto slices_wanted = threads == 1 ? 1 : threads * 4;
  const auto panels = std::min(slice_bytes / panel_bytes, made.panels() / slices_wanted);
  return std::max<std::size_t>(panels, 1) * panel_width;
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
  const auto team = on.team->size();
  source_slices slices(sources, rows, slice_rows(sources, *made, team), team);
  on.run(padded_rows * columns, [&](std::size_t thread, std::size_t threads) {
    if (threads > 1) {
      // The split of matmul: a panel lies near the thread that is dealt it, whoever packs it.
      take_near(*made, split_part(made->panels(), threads, thread));
      on.barrier(threads);
    }
    while (const auto slice = slices.take()) {
      pack_slice(job, slice->rows);
      slices.packed(*slice);
      on.beat();
    }
  });
  if (const auto wrong = job.too_large.load(); wrong != nothing)
    return too_large(job, wrong);
  return made;
}

} // namespace troupe::compute::cpu
