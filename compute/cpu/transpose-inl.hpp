// 32 rows by 32 columns of stored elements -> [column][row], the order of a panel. Included once
// per instruction set (Highway's foreach_target), hence no #pragma once.
//
// Some rows are taken at a time, as many as elements fit into 16 bytes. Their lines are looked at
// once and then left: at a distance of some KiB, 32 of them would push each other out of the
// first-level cache.

#if defined(TROUPE_COMPUTE_CPU_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_TRANSPOSE_INL
#undef TROUPE_COMPUTE_CPU_TRANSPOSE_INL
#else
#define TROUPE_COMPUTE_CPU_TRANSPOSE_INL
#endif

#include "compute/cpu/pack_panel.hpp"

#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

/// rows: where the 32 elements of each row begin, unaligned. out: [pack_columns][panel_width].
template <class Bits>
void transpose(const std::byte* const* rows, Bits* out) {
  for (std::size_t row = 0; row < panel_width; ++row)
    for (std::size_t column = 0; column < pack_columns; ++column)
      std::memcpy(
        &out[column * panel_width + row], rows[row] + column * sizeof(Bits), sizeof(Bits));
}

#else

/// Rows of a group: a column of it has 16 bytes.
template <class Bits>
inline constexpr std::size_t group_rows = 16 / sizeof(Bits);

/// Each 16 bytes of `columns` to a column of its own, group_rows columns apart.
template <class D, class V, class Bits>
HWY_INLINE void store_columns(D d, V columns, Bits* out) {
  if constexpr (hn::MaxLanes(d) == group_rows<Bits>) {
    hn::StoreU(columns, d, out);
  } else {
    const hn::Half<D> half;
    store_columns(half, hn::LowerHalf(half, columns), out);
    store_columns(
      half, hn::UpperHalf(half, columns), out + hn::MaxLanes(half) * std::size_t{panel_width});
  }
}

/// A vector of columns of one group.
template <class D, class Bits>
HWY_INLINE void transpose_group(D d, const std::byte* const* rows, std::size_t column, Bits* out) {
  constexpr auto group = group_rows<Bits>;
  hn::Vec<D> now[group];
#pragma GCC unroll 8
  for (std::size_t row = 0; row < group; ++row)
    now[row] = hn::LoadU(d, reinterpret_cast<const Bits*>(rows[row] + column * sizeof(Bits)));
    // A round turns the number of an element, (vector, lane) of 16 bytes, by one bit: the highest
    // one of its row becomes the lowest of its lane, the highest of its column the lowest of its
    // vector.
#pragma GCC unroll 3
  for (std::size_t round = 1; round < group; round *= 2) {
    hn::Vec<D> next[group];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < group / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, now[i], now[i + group / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, now[i], now[i + group / 2]);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < group; ++i)
      now[i] = next[i];
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < group; ++i)
    store_columns(d, now[i], out + (column + i) * panel_width);
}

/// rows: where the 32 elements of each row begin, unaligned. out: [pack_columns][panel_width].
template <class Bits>
void transpose(const std::byte* const* rows, Bits* out) {
  const hn::CappedTag<Bits, pack_columns> d;
  for (std::size_t row = 0; row < panel_width; row += group_rows<Bits>)
    for (std::size_t column = 0; column < pack_columns; column += hn::MaxLanes(d))
      transpose_group(d, rows + row, column, out + row);
}

#endif

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
