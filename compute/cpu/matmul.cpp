// out = x * W^T from panels. The rows of x are cut into tiles, the columns into blocks. The first
// tile of a block streams its weights from memory and leaves them converted for the other tiles,
// which find them in the first-level cache. With one tile only there is nothing to leave and no
// need for blocks. The work is split over the panels, never over the columns of W; which
// thread computes one does not show in the result.

#include "compute/cpu/matmul_job.hpp"
#include "compute/cpu/operations.hpp"

#include <unistd.h>

#include <algorithm>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/matmul.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/finish-inl.hpp"
#include "compute/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// Where a tile's rows of a block lie in job.tiles: [block][tile][column][row].
float* tile_of_x(const matmul_job& job, std::size_t begin, std::size_t count, std::size_t row) {
  return job.tiles + begin * job.x.rows + row * count;
}

/// One thread's share of filling job.tiles.
void lay_side_by_side(const matmul_job& job, std::size_t thread, std::size_t threads) {
  const row_tiles cut{job.x.rows};
  const auto blocks = (job.columns() + block_columns - 1) / block_columns;
  const auto mine = split_part(blocks * cut.count(), threads, thread);
  for (auto i = mine.begin; i < mine.end; ++i) {
    const auto begin = i / cut.count() * block_columns;
    const auto count = std::min(block_columns, job.columns() - begin);
    const auto first = cut.first(i % cut.count());
    const auto height = cut.height(i % cut.count());
    float* to = tile_of_x(job, begin, count, first);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t r = 0; r < height; ++r)
        *to++ = job.x.row(first + r)[begin + k];
  }
}

/// Some columns of a panel times all rows of x: one call a block.
template <class Weight, std::size_t Vectors>
class panel_block {
public:
  panel_block(const matmul_job& job, float* room) : job_(job), cut_{job.x.rows}, room_(room) {}

  /// Columns [begin, begin + count); sums: [rows][panel_width]. What the walk will read next is
  /// `ahead` bytes from where it is.
  void multiply(const Weight* panel,
                std::size_t begin,
                std::size_t count,
                std::ptrdiff_t ahead,
                float* sums) const {
    using sum_rows = regular<float, panel_width>;
    using weight_rows = regular<const Weight, panel_width>;
    using kept_rows = regular<const float, panel_width>;
    static constexpr auto streamed =
      make_tiles<Vectors, weight_rows, side_by_side, sum_rows, sum_rows, fetch_stream>();
    static constexpr auto plain =
      make_tiles<Vectors, kept_rows, side_by_side, sum_rows, nothing_kept, no_fetch>();
    constexpr bool converts = !std::is_same_v<Weight, float>;
    const auto* weights = panel + begin * panel_width;
    float* kept = converts && cut_.count() > 1 ? room_ : nullptr;
    const auto x = [&](std::size_t row) {
      return side_by_side{tile_of_x(job_, begin, count, row)};
    };
    for (std::size_t lane = 0; lane < panel_width; lane += Vectors * lane_count)
      streamed[cut_.height(0) - 1]({weights + lane},
                                   count,
                                   x(0),
                                   {sums + lane},
                                   begin > 0,
                                   {ahead},
                                   {kept ? kept + lane : nullptr});
    const float* converted = room_;
    if constexpr (!converts)
      converted = weights;
    for (std::size_t t = 1; t < cut_.count(); ++t)
      for (std::size_t lane = 0; lane < panel_width; lane += Vectors * lane_count)
        plain[cut_.height(t) - 1]({converted + lane},
                                  count,
                                  x(cut_.first(t)),
                                  {sums + cut_.first(t) * panel_width + lane},
                                  begin > 0,
                                  {},
                                  {});
  }

private:
  const matmul_job& job_;
  row_tiles cut_;
  float* room_; ///< [block_columns][panel_width]
};

/// Panels of one tile of rows are walked from end to end, or in blocks where a tile takes several
/// passes for the lanes of a panel.
template <class Weight, std::size_t Vectors>
void multiply_panels(const matmul_job& job, float* sums, std::size_t thread) {
  HWY_ALIGN float room[block_columns * panel_width];
  const panel_block<Weight, Vectors> part(job, room);
  const bool whole = job.x.rows <= tile_rows && Vectors * lane_count == panel_width;
  const auto step = whole ? job.columns() : block_columns;
  const auto panel_sums = job.x.rows * panel_width;
  const auto start = [&](std::size_t panel) {
    return reinterpret_cast<const Weight*>(job.weights->panel(panel));
  };
  for (;;) {
    const auto [group, end] = job.on->work.take(thread, job.group_panels);
    if (group == end)
      return;
    for (std::size_t begin = 0; begin < job.columns(); begin += step)
      for (auto panel = group; panel < end; ++panel) {
        // A single panel is read in the order of memory; otherwise the same columns of the next
        // one follow, or the next columns of the first.
        std::ptrdiff_t ahead = fetch_stream{}.ahead;
        if (end - group > 1)
          ahead = panel + 1 < end
                    ? reinterpret_cast<const std::byte*>(start(panel + 1))
                        - reinterpret_cast<const std::byte*>(start(panel))
                    : reinterpret_cast<const std::byte*>(start(group) + step * panel_width)
                        - reinterpret_cast<const std::byte*>(start(panel));
        part.multiply(start(panel),
                      begin,
                      std::min(step, job.columns() - begin),
                      ahead,
                      sums + (panel - group) * panel_sums);
      }
    finish_panels(job, {group, end}, sums);
    job.on->beat();
  }
}

template <class Weight>
void multiply_share(const matmul_job& job, std::size_t thread) {
  const auto kept = std::min(job.group_panels, job.weights->panels());
  float* sums = job.on->each[thread].floats(kept * job.x.rows * panel_width);
  constexpr auto panel_vectors = panel_width / lane_count;
  constexpr auto wide = std::min<std::size_t>(panel_vectors, lane_count == 16 ? 2 : 4);
  if (job.x.rows <= 2)
    multiply_panels<Weight, wide>(job, sums, thread);
  else
    multiply_panels<Weight, tile_vectors>(job, sums, thread);
}

/// One thread's share of a product.
void matmul_share(const matmul_job& job, std::size_t thread, std::size_t threads) {
  if (job.x.rows > 1) {
    lay_side_by_side(job, thread, threads);
    job.on->barrier(threads);
  }
  switch (job.weights->held()) {
  case dtype::f32: return multiply_share<float>(job, thread);
  case dtype::f16: return multiply_share<f16>(job, thread);
  case dtype::bf16: return multiply_share<bf16>(job, thread);
  case dtype::int8:
  case dtype::int4: break; // matmul_blocks.cpp
  }
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(matmul_share);

namespace {

std::size_t second_level_cache() {
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 512 * 1024;
}

/// Rows of x whose block of columns takes half of the second-level cache.
std::size_t rows_at_once() {
  const auto rows = second_level_cache() / 2 / (block_columns * sizeof(float));
  return std::clamp<std::size_t>(rows, 96, 960);
}

/// One where all of x stays in the second-level cache: then weights are read in the order of
/// memory. Otherwise panels whose sums take a quarter of it share each block of x.
std::size_t panels_at_once(std::size_t rows, std::size_t columns) {
  if (rows * columns * sizeof(float) <= second_level_cache() / 2)
    return 1;
  const auto panels = second_level_cache() / 4 / (rows * panel_width * sizeof(float));
  return std::clamp<std::size_t>(panels, 4, 32);
}

} // namespace

void matmul(execution& on,
            const panel_matrix& weights,
            tensor x,
            std::span<const float> bias,
            tensor out,
            tensor added) {
  check(x.columns == weights.columns(), "matmul: x has the columns of the weight");
  check(out.columns == weights.rows() && out.rows == x.rows, "matmul: out is [x.rows, W.rows]");
  check(bias.empty() || bias.size() == weights.rows(), "matmul: a bias value for each output");
  check(!added.data || (added.columns == out.columns && added.rows == out.rows),
        "matmul: what is added has the shape of out");
  const auto part = [](tensor whole, std::size_t first, std::size_t rows) {
    return tensor(whole.data ? whole.row(first) : nullptr, rows, whole.columns, whole.stride);
  };
  for (std::size_t first = 0; first < x.rows; first += rows_at_once()) {
    const auto rows = std::min(rows_at_once(), x.rows - first);
    matmul_job job{.on = &on,
                   .weights = &weights,
                   .x = part(x, first, rows),
                   .bias = bias,
                   .out = part(out, first, rows),
                   .added = part(added, first, rows),
                   .tiles = x.row(first), // As it is when there is only one row.
                   .group_panels = panels_at_once(rows, x.columns)};
    if (is_quantised(weights.held())) {
      matmul_blocks(job);
      continue;
    }
    if (rows > 1)
      job.tiles = on.shared.floats(rows * x.columns);
    on.work.deal(weights.panels(), on.threads_for(job.elements()));
    on.run(job.elements(), [&](std::size_t thread, std::size_t threads) {
      HWY_DYNAMIC_DISPATCH(matmul_share)(job, thread, threads);
    });
  }
}

} // namespace troupe::compute::cpu

#endif
