// out = x * W^T from panels. Two roads with the same bits:
// - few rows: the panels are streamed from memory once and converted in registers;
// - many rows: x is copied into blocks of columns that fit the second-level cache; each block of a
//   panel is converted to f32 once and used by all rows.
// The work is split over the panels, never over the columns of W.

#include "compute/cpu/matmul_job.hpp"
#include "compute/cpu/operations.hpp"

#include <unistd.h>

#include <algorithm>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/matmul.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// out = sum (+ bias) (+ out) over some lanes; no bias is null.
template <class D>
HWY_INLINE void
finish_lanes(D d, const float* sum, const float* bias, bool accumulate, float* out) {
  auto value = hn::LoadU(d, sum);
  if (bias != nullptr)
    value = hn::Add(value, hn::LoadU(d, bias));
  if (accumulate)
    value = hn::Add(hn::LoadU(d, out), value);
  hn::StoreU(value, d, out);
}

/// sums: [rows][panel_width] of one panel -> out.
void finish_panel(const matmul_job& job, std::size_t panel, const float* sums) {
  const auto first = panel * panel_width;
  const auto count = std::min(panel_width, job.weights->rows() - first);
  const float* bias = job.bias.empty() ? nullptr : job.bias.data() + first;
  for (std::size_t row = 0; row < job.x.rows; ++row) {
    const float* sum = sums + row * panel_width;
    float* out = job.out.row(row) + first;
    std::size_t i = 0;
    for (; i + lane_count <= count; i += lane_count)
      finish_lanes(lanes(), sum + i, bias ? bias + i : nullptr, job.accumulate, out + i);
    for (; i < count; ++i)
      finish_lanes(
        hn::CappedTag<float, 1>(), sum + i, bias ? bias + i : nullptr, job.accumulate, out + i);
  }
}

/// Streams panels for the rows of one tile. Vectors are as many as the registers take beside the
/// rows; where those are not a whole panel, blocks of it pass through the first-level cache.
template <class Weight, std::size_t Vectors>
void stream_panels(const matmul_job& job, range panels) {
  static constexpr auto tiles = make_tiles<Weight, Vectors, true>();
  constexpr auto pass_lanes = Vectors * lane_count;
  const auto block = pass_lanes == panel_width ? job.columns() : block_columns;
  HWY_ALIGN float sums[tile_rows * panel_width];
  for (auto panel = panels.begin; panel < panels.end; ++panel) {
    const auto* weights = reinterpret_cast<const Weight*>(job.weights->panel(panel));
    for (std::size_t begin = 0; begin < job.columns(); begin += block)
      for (std::size_t lane = 0; lane < panel_width; lane += pass_lanes)
        tiles[job.x.rows - 1]({weights + begin * panel_width + lane, panel_width},
                              std::min(block, job.columns() - begin),
                              {job.x.data + begin, job.x.stride},
                              {sums + lane, panel_width},
                              begin > 0);
    finish_panel(job, panel, sums);
  }
}

/// A block of a panel as f32: in place, or converted into `room`.
const float* block_weights(const float* weights, std::size_t, float*) {
  return weights;
}

template <class Weight>
const float* block_weights(const Weight* weights, std::size_t columns, float* room) {
  const lanes d;
  for (std::size_t i = 0; i < columns * panel_width; i += lane_count)
    hn::Store(load_weights(d, weights + i), d, room + i);
  return room;
}

void copy_blocks(const matmul_job& job, range rows) {
  for (std::size_t begin = 0, block = 0; begin < job.columns(); begin += block_columns, ++block) {
    const auto count = std::min(block_columns, job.columns() - begin);
    for (auto row = rows.begin; row < rows.end; ++row)
      std::copy_n(
        job.x.row(row) + begin, count, job.blocks + (block * job.x.rows + row) * block_stride);
  }
}

template <class Weight>
void multiply_panels(const matmul_job& job, range panels, float* sums) {
  HWY_ALIGN float room[block_columns * panel_width];
  const auto panel_sums = job.x.rows * panel_width;
  for (auto group = panels.begin; group < panels.end; group += job.group_panels) {
    const auto end = std::min(group + job.group_panels, panels.end);
    for (std::size_t begin = 0, block = 0; begin < job.columns(); begin += block_columns, ++block) {
      const auto count = std::min(block_columns, job.columns() - begin);
      for (auto panel = group; panel < end; ++panel) {
        const auto* weights = reinterpret_cast<const Weight*>(job.weights->panel(panel));
        // The block after this one: of the next panel, or the next columns of the first panel.
        const bool last = panel + 1 == end;
        const auto* after = job.weights->panel(last ? group : panel + 1)
                            + (last ? begin + block_columns : begin) * panel_width * sizeof(Weight);
        multiply({block_weights(weights + begin * panel_width, count, room), panel_width},
                 count,
                 panel_width,
                 {job.blocks + block * job.x.rows * block_stride, block_stride},
                 job.x.rows,
                 {sums + (panel - group) * panel_sums, panel_width},
                 begin > 0,
                 {after, count * panel_width * sizeof(Weight)});
      }
    }
    for (auto panel = group; panel < end; ++panel)
      finish_panel(job, panel, sums + (panel - group) * panel_sums);
  }
}

template <class Weight>
void multiply_share(const matmul_job& job, std::size_t thread, std::size_t threads) {
  const auto panels = split_part(job.weights->panels(), threads, thread);
  if (job.x.rows > tile_rows) {
    copy_blocks(job, split_part(job.x.rows, threads, thread));
    job.on->barrier(threads);
    const auto sums = std::min(job.group_panels, panels.size()) * job.x.rows * panel_width;
    multiply_panels<Weight>(job, panels, job.on->each[thread].floats(sums));
    return;
  }
  constexpr auto panel_vectors = panel_width / lane_count;
  constexpr auto wide = std::min<std::size_t>(panel_vectors, lane_count == 16 ? 2 : 4);
  if (job.x.rows <= 2)
    stream_panels<Weight, wide>(job, panels);
  else
    stream_panels<Weight, tile_vectors>(job, panels);
}

/// One thread's share of a product.
void matmul_share(const matmul_job& job, std::size_t thread, std::size_t threads) {
  switch (job.weights->held()) {
  case dtype::f32: return multiply_share<float>(job, thread, threads);
  case dtype::f16: return multiply_share<f16>(job, thread, threads);
  case dtype::bf16: return multiply_share<bf16>(job, thread, threads);
  }
}

/// Rows that one pass over the weights streams.
std::size_t streamed_rows() {
  return tile_rows;
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(matmul_share);
HWY_EXPORT(streamed_rows);

namespace {

std::size_t second_level_cache() {
  static const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 512 * 1024;
}

/// Rows of x whose block of columns takes half of the second-level cache.
std::size_t rows_at_once() {
  const auto rows = second_level_cache() / 2 / (block_stride * sizeof(float));
  return std::clamp<std::size_t>(rows, 96, 960);
}

/// Panels whose sums for that many rows take a quarter of it.
std::size_t panels_at_once(std::size_t rows) {
  const auto panels = second_level_cache() / 4 / (rows * panel_width * sizeof(float));
  return std::clamp<std::size_t>(panels, 4, 32);
}

} // namespace

void matmul(execution& on,
            const panel_matrix& weights,
            tensor x,
            std::span<const float> bias,
            tensor out,
            bool accumulate) {
  check(x.columns == weights.columns(), "matmul: x has the columns of the weight");
  check(out.columns == weights.rows() && out.rows == x.rows, "matmul: out is [x.rows, W.rows]");
  check(bias.empty() || bias.size() == weights.rows(), "matmul: a bias value for each output");
  const auto streamed = HWY_DYNAMIC_DISPATCH(streamed_rows)();
  const auto blocks = (x.columns + block_columns - 1) / block_columns;
  for (std::size_t first = 0; first < x.rows; first += rows_at_once()) {
    const auto rows = std::min(rows_at_once(), x.rows - first);
    matmul_job job{.on = &on,
                   .weights = &weights,
                   .x = {x.row(first), rows, x.columns, x.stride},
                   .bias = bias,
                   .out = {out.row(first), rows, out.columns, out.stride},
                   .accumulate = accumulate,
                   .blocks = nullptr,
                   .group_panels = panels_at_once(rows)};
    if (rows > streamed)
      job.blocks = on.shared.floats(blocks * rows * block_stride);
    on.run(rows * weights.rows() * weights.columns(), [&](std::size_t thread, std::size_t threads) {
      HWY_DYNAMIC_DISPATCH(matmul_share)(job, thread, threads);
    });
  }
}

} // namespace troupe::compute::cpu

#endif
