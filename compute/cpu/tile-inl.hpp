// The register-blocked tile: some rows of x times some vectors of weights. Included once per
// instruction set (Highway's foreach_target), hence no #pragma once.
//
// Every output element is the chain  sum = fma(x[k], w[k], sum)  over k = 0, 1, 2 ... from zero. A
// chain may be interrupted after any k and resumed from memory: that does not change its bits, so
// blocking over k, rows and lanes is free.

#if defined(TROUPE_COMPUTE_CPU_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_TILE_INL
#undef TROUPE_COMPUTE_CPU_TILE_INL
#else
#define TROUPE_COMPUTE_CPU_TILE_INL
#endif

#include "compute/cpu/half.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using lanes = hn::CappedTag<float, 16>;
using vector = hn::Vec<lanes>;

inline constexpr std::size_t lane_count = hn::MaxLanes(lanes());
// AVX-512 and 64-bit ARM have 32 vector registers, older x86 has 16. A tile keeps rows * 2 sums, 2
// vectors of weights and one of x in them.
inline constexpr std::size_t tile_rows = lane_count == 16 ? 12 : 6;
inline constexpr std::size_t tile_vectors = 2;
inline constexpr std::size_t tile_lanes = tile_vectors * lane_count;

HWY_INLINE vector load_weights(lanes d, const float* from) {
  return hn::LoadU(d, from);
}

HWY_INLINE vector load_weights(lanes d, const bf16* from) {
  const hn::Rebind<std::uint16_t, lanes> half;
  const hn::Rebind<std::uint32_t, lanes> wide;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}

HWY_INLINE vector load_weights(lanes d, const f16* from) {
  const hn::Rebind<std::uint16_t, lanes> half;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // No instruction for it: the same arithmetic as to_float(f16), a vector at a time.
  const hn::Rebind<std::uint32_t, lanes> wide;
  const auto word = hn::PromoteTo(wide, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(word, hn::Set(wide, 0x8000u)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(word, hn::Set(wide, 0x7fffu)));
  const auto exponent = hn::And(word, hn::Set(wide, 0x7c00u));
  const auto special =
    hn::IfThenElseZero(hn::Eq(exponent, hn::Set(wide, 0x7c00u)), hn::Set(wide, 0x7f800000u));
  const auto rebased = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112f));
  return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(wide, rebased), special), sign));
#else
  const hn::Rebind<hwy::float16_t, lanes> half_float;
  return hn::PromoteTo(d, hn::BitCast(half_float, bits));
#endif
}

/// One tile: `count` steps of k for Rows rows of x and Vectors vectors of weights. Weights of step
/// k start at w + k * w_stride. Sums start at zero, or at what `sums` holds if `resume`. Ahead:
/// fetch the weights that many bytes early, for weights that come from memory.
template <class Weight, std::size_t Rows, std::size_t Vectors, std::size_t Ahead>
HWY_NOINLINE void tile(const Weight* HWY_RESTRICT w,
                       std::size_t w_stride,
                       std::size_t count,
                       const float* HWY_RESTRICT x,
                       std::size_t x_stride,
                       float* HWY_RESTRICT sums,
                       std::size_t sums_stride,
                       bool resume) {
  const lanes d;
  vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      sum[r][v] = resume ? hn::LoadU(d, sums + r * sums_stride + v * lane_count) : hn::Zero(d);
  for (std::size_t k = 0; k < count; ++k) {
    if constexpr (Ahead > 0)
#pragma GCC unroll 4
      for (std::size_t line = 0; line < Vectors * lane_count * sizeof(Weight); line += 64)
        hwy::Prefetch(reinterpret_cast<const std::byte*>(w) + Ahead + line);
    vector weights[Vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      weights[v] = load_weights(d, w + v * lane_count);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const auto value = hn::Set(d, x[r * x_stride + k]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < Vectors; ++v)
        sum[r][v] = hn::MulAdd(value, weights[v], sum[r][v]);
    }
    w += w_stride;
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      hn::StoreU(sum[r][v], d, sums + r * sums_stride + v * lane_count);
}

template <class Weight>
using tile_function = void (*)(
  const Weight*, std::size_t, std::size_t, const float*, std::size_t, float*, std::size_t, bool);

/// The tiles of 1 ... tile_rows rows; that of r rows is at r - 1.
template <class Weight, std::size_t Vectors, std::size_t Ahead>
constexpr std::array<tile_function<Weight>, tile_rows> make_tiles() {
  return []<std::size_t... Row>(std::index_sequence<Row...>) {
    return std::array<tile_function<Weight>, tile_rows>{&tile<Weight, Row + 1, Vectors, Ahead>...};
  }
  (std::make_index_sequence<tile_rows>());
}

/// Asks for memory to be brought near, a cache line at a time.
HWY_INLINE void fetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    hwy::Prefetch(from + i);
}

/// A product of any number of rows and lanes out of tiles: sums[r][lane] for lanes rounded up to
/// whole tiles, so w and sums have that much readable (and sums writable) room. Meanwhile `coming`,
/// what will be needed next, is fetched, a part beside each tile of rows.
HWY_INLINE void multiply(const float* w,
                         std::size_t w_stride,
                         std::size_t count,
                         std::size_t lane_total,
                         const float* x,
                         std::size_t x_stride,
                         std::size_t rows,
                         float* sums,
                         std::size_t sums_stride,
                         bool resume,
                         std::span<const std::byte> coming = {}) {
  static constexpr auto tiles = make_tiles<float, tile_vectors, 0>();
  const auto row_tiles = (rows + tile_rows - 1) / tile_rows;
  const auto fetched = coming.size() / row_tiles;
  for (std::size_t t = 0, first = 0; t < row_tiles; ++t) {
    // Tiles of nearly equal height: 13 rows are 7 + 6, not 12 + 1.
    const auto height = rows / row_tiles + (t < rows % row_tiles ? 1 : 0);
    for (std::size_t lane = 0; lane < lane_total; lane += tile_lanes)
      tiles[height - 1](w + lane,
                        w_stride,
                        count,
                        x + first * x_stride,
                        x_stride,
                        sums + first * sums_stride + lane,
                        sums_stride,
                        resume);
    fetch(coming.data() + t * fetched, fetched);
    first += height;
  }
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
