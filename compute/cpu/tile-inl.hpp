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

/// Asks for memory to be brought near, a cache line at a time.
HWY_INLINE void fetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(from + i, 0, 3);
}

/// For a walk through memory: the second-level cache, which waits for more lines at once than the
/// first, is filled far ahead, the first one just ahead. Measured: 1.5 times the rate of none.
HWY_INLINE void fetch_stream(const std::byte* at, std::size_t bytes) {
  constexpr std::size_t far_ahead = 8192;
  constexpr std::size_t just_ahead = 1024;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(at + far_ahead + i, 0, 2);
    __builtin_prefetch(at + just_ahead + i, 0, 3);
  }
}

/// Rows of a matrix in memory, `stride` elements apart.
template <class T>
struct strided {
  T* data;
  std::size_t stride;

  T* row(std::size_t index) const { return data + index * stride; }

  strided at(std::size_t row_index, std::size_t column) const {
    return {row(row_index) + column, stride};
  }
};

/// One tile: `count` steps of k for Rows rows of x and Vectors vectors of weights (row k of `w` has
/// those of step k). Sums start at zero, or at what `sums` holds if `resume`. Streamed: the weights
/// come from memory in this order, and are asked for ahead.
template <class Weight, std::size_t Rows, std::size_t Vectors, bool Streamed>
HWY_NOINLINE void tile(strided<const Weight> w,
                       std::size_t count,
                       strided<const float> x,
                       strided<float> sums,
                       bool resume) {
  const lanes d;
  vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      sum[r][v] = resume ? hn::LoadU(d, sums.row(r) + v * lane_count) : hn::Zero(d);
  const Weight* HWY_RESTRICT step = w.data;
  for (std::size_t k = 0; k < count; ++k, step += w.stride) {
    if constexpr (Streamed)
      fetch_stream(reinterpret_cast<const std::byte*>(step), Vectors * lane_count * sizeof(Weight));
    vector weights[Vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      weights[v] = load_weights(d, step + v * lane_count);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const auto value = hn::Set(d, x.row(r)[k]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < Vectors; ++v)
        sum[r][v] = hn::MulAdd(value, weights[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      hn::StoreU(sum[r][v], d, sums.row(r) + v * lane_count);
}

template <class Weight>
using tile_function =
  void (*)(strided<const Weight>, std::size_t, strided<const float>, strided<float>, bool);

/// The tiles of 1 ... tile_rows rows; that of r rows is at r - 1.
template <class Weight, std::size_t Vectors, bool Streamed>
constexpr std::array<tile_function<Weight>, tile_rows> make_tiles() {
  return []<std::size_t... Row>(std::index_sequence<Row...>) {
    return std::array<tile_function<Weight>, tile_rows>{
      &tile<Weight, Row + 1, Vectors, Streamed>...};
  }
  (std::make_index_sequence<tile_rows>());
}

/// A product of any number of rows and lanes out of tiles: sums[row][lane] for lanes rounded up to
/// whole tiles, so w and sums have that much readable (and sums writable) room. Meanwhile `coming`,
/// what will be needed next, is fetched, a part beside each tile of rows.
HWY_INLINE void multiply(strided<const float> w,
                         std::size_t count,
                         std::size_t lane_total,
                         strided<const float> x,
                         std::size_t rows,
                         strided<float> sums,
                         bool resume,
                         std::span<const std::byte> coming) {
  static constexpr auto tiles = make_tiles<float, tile_vectors, false>();
  const auto row_tiles = (rows + tile_rows - 1) / tile_rows;
  const auto fetched = coming.size() / row_tiles;
  for (std::size_t t = 0, first = 0; t < row_tiles; ++t) {
    fetch(coming.data() + t * fetched, fetched);
    // Tiles of nearly equal height: 13 rows are 7 + 6, not 12 + 1.
    const auto height = rows / row_tiles + (t < rows % row_tiles ? 1 : 0);
    for (std::size_t lane = 0; lane < lane_total; lane += tile_lanes)
      tiles[height - 1](w.at(0, lane), count, x.at(first, 0), sums.at(first, lane), resume);
    first += height;
  }
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
