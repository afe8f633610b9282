// The register-blocked tile: some rows of x times some vectors of weights. Included once per
// instruction set (Highway's foreach_target), hence no #pragma once.
//
// Every output element is the chain  sum = fma(x[k], w[k], sum)  over k = 0, 1, 2 ... from zero. A
// chain may be interrupted after any k and resumed from memory: that does not change its bits, so
// blocking over k, rows and lanes is free.
//
// A core computes faster than it waits: while a tile works, it asks for the memory that is needed
// next, a line or two at each step. Many requests at once would fill the core's few slots for them
// and hold up the tile's own reads.

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

/// The same arithmetic as to_float(f16), a vector at a time.
HWY_INLINE vector widen_f16(lanes d, hn::Vec<hn::Rebind<std::uint16_t, lanes>> bits) {
  const hn::Rebind<std::uint32_t, lanes> wide;
  const auto word = hn::PromoteTo(wide, bits);
  const auto sign = hn::ShiftLeft<16>(hn::And(word, hn::Set(wide, 0x8000u)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(word, hn::Set(wide, 0x7fffu)));
  const auto exponent = hn::And(word, hn::Set(wide, 0x7c00u));
  const auto special =
    hn::IfThenElseZero(hn::Eq(exponent, hn::Set(wide, 0x7c00u)), hn::Set(wide, 0x7f800000u));
  const auto rebased = hn::Mul(hn::BitCast(d, shifted), hn::Set(d, 0x1p112f));
  return hn::BitCast(d, hn::Or(hn::Or(hn::BitCast(wide, rebased), special), sign));
}

HWY_INLINE vector load_weights(lanes d, const f16* from) {
  const hn::Rebind<std::uint16_t, lanes> half;
  const auto bits = hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from));
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  return widen_f16(d, bits); // No instruction for it.
#else
  const hn::Rebind<hwy::float16_t, lanes> half_float;
  return hn::PromoteTo(d, hn::BitCast(half_float, bits));
#endif
}

/// Rows of a matrix in memory, `stride` elements apart.
template <class T>
struct strided {
  T* data;
  std::size_t stride;

  T* row(std::size_t index) const { return data + index * stride; }
};

/// The same with a distance that the compiler knows: a tile then spends nothing on addresses. As
/// the x of a tile it has element k of row r.
template <class T, std::size_t Stride>
struct regular {
  T* data;

  T* row(std::size_t index) const { return data + index * Stride; }

  template <std::size_t Rows>
  HWY_INLINE T& element(std::size_t r, std::size_t k) const {
    return data[r * Stride + k];
  }
};

/// x of a tile with its rows side by side: what a step reads lies in one line, what the next one
/// reads behind it, whatever the distance of the rows was.
struct side_by_side {
  const float* data;

  template <std::size_t Rows>
  HWY_INLINE const float& element(std::size_t r, std::size_t k) const {
    return data[k * Rows + r];
  }
};

/// Memory to ask for during a tile: nothing.
struct no_fetch {
  template <std::size_t Bytes>
  HWY_INLINE void beside(const std::byte*, std::size_t) const {}
};

/// What will be multiplied next, for the first-level cache, and what comes after that, for the
/// second; `bytes` of both a step.
struct fetch_coming {
  const std::byte* next;
  const std::byte* later;
  std::size_t bytes;

  template <std::size_t Bytes>
  HWY_INLINE void beside(const std::byte*, std::size_t k) const {
    for (std::size_t i = k * bytes; i < (k + 1) * bytes; i += 64) {
      __builtin_prefetch(later + i, 0, 2);
      __builtin_prefetch(next + i, 0, 3);
    }
  }
};

/// For weights that come from memory. The second-level cache, which waits for more lines at once
/// than the first, is filled far ahead, from where the walk will be `ahead` of here; the first one
/// just ahead. Measured: 1.5 times the rate of none.
struct fetch_stream {
  std::ptrdiff_t ahead = 8192;

  template <std::size_t Bytes>
  HWY_INLINE void beside(const std::byte* at, std::size_t) const {
    constexpr std::size_t just_ahead = 1024;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Bytes; i += 64) {
      __builtin_prefetch(at + ahead + i, 0, 2);
      __builtin_prefetch(at + just_ahead + i, 0, 3);
    }
  }
};

/// One tile: `count` steps of k for Rows rows of x and Vectors vectors of weights (row k of `w` has
/// those of step k). Sums start at zero, or at what `sums` holds if `resume`. Converted weights are
/// left in `kept`, a row a step, unless that is null. W, S and K are rows of weights, sums and kept
/// weights.
template <std::size_t Rows, std::size_t Vectors, class W, class X, class S, class K, class Fetch>
HWY_NOINLINE void tile(W w, std::size_t count, X x, S sums, bool resume, Fetch fetch, K kept) {
  const lanes d;
  vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      sum[r][v] = resume ? hn::LoadU(d, sums.row(r) + v * lane_count) : hn::Zero(d);
  for (std::size_t k = 0; k < count; ++k) {
    const auto* step = w.row(k);
    fetch.template beside<Vectors * lane_count * sizeof(*step)>(
      reinterpret_cast<const std::byte*>(step), k);
    vector weights[Vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v)
      weights[v] = load_weights(d, step + v * lane_count);
    if (kept.data != nullptr) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < Vectors; ++v)
        hn::StoreU(weights[v], d, kept.row(k) + v * lane_count);
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < Rows; ++r) {
      const auto value = hn::Set(d, x.template element<Rows>(r, k));
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

/// The tiles of 1 ... tile_rows rows; that of r rows is at r - 1.
template <std::size_t Vectors, class W, class X, class S, class K, class Fetch>
constexpr auto make_tiles() {
  using function = void (*)(W, std::size_t, X, S, bool, Fetch, K);
  return []<std::size_t... Row>(std::index_sequence<Row...>) {
    return std::array<function, tile_rows>{&tile<Row + 1, Vectors, W, X, S, K, Fetch>...};
  }
  (std::make_index_sequence<tile_rows>());
}

/// For tiles that keep no converted weights.
struct nothing_kept {
  static constexpr float* data = nullptr;

  float* row(std::size_t) const { return nullptr; }
};

/// The cut of many rows into tiles of nearly equal height: 13 rows are 7 + 6, not 12 + 1.
struct row_tiles {
  std::size_t rows;

  std::size_t count() const { return (rows + tile_rows - 1) / tile_rows; }

  std::size_t height(std::size_t tile) const {
    return rows / count() + (tile < rows % count() ? 1 : 0);
  }

  std::size_t first(std::size_t tile) const {
    return tile * (rows / count()) + std::min(tile, rows % count());
  }
};

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
