// Blocks of a panel, from 32 columns of its 32 rows. Included once per instruction set (Highway's
// foreach_target), hence no #pragma once.
//
// A lane is a row: scales and minima of a vector of rows are found at once, and a vector of codes
// has the byte that each row's word of four columns wants. The bits are those of quantise().
//
// Codes are quotients, rounded. Divisions would take most of the time, so a value is multiplied by
// the inverse of its scale, which is off by less than 127 * 2^-22 < 2^-14: far from the middle
// between two codes both round to the same one. Near it, one value in some hundreds, code_of()
// divides.

#if defined(TROUPE_COMPUTE_CPU_QUANTISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_COMPUTE_CPU_QUANTISE_INL
#undef TROUPE_COMPUTE_CPU_QUANTISE_INL
#else
#define TROUPE_COMPUTE_CPU_QUANTISE_INL
#endif

#include "compute/cpu/blocks.hpp"
#include "compute/cpu/tile-inl.hpp"

#include <limits>

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

using words = hn::RebindToSigned<lanes>;
using word_vector = hn::Vec<words>;

/// How far from a whole number steps may be that surely round to it.
inline constexpr float surely_off = 0.4999f;
inline constexpr std::int32_t magnitude_bits = 0x7fffffff;
inline constexpr std::int32_t infinity_bits = 0x7f800000;
inline constexpr std::int32_t upper_half = static_cast<std::int32_t>(0xffff0000u);

/// Columns of one block for a vector of rows: [quantised_block][panel_width] stored elements.
template <class Stored>
struct block_columns_of {
  const Stored* first; ///< Column 0 of the first of these rows.
  std::size_t count;   ///< Columns that there are; the others are zeros.

  HWY_INLINE vector operator[](std::size_t column) const {
    return load_weights(lanes(), first + column * block_rows);
  }
};

/// What the codes of a vector of rows are made with.
struct row_scales {
  vector scale;
  vector minimum;
  vector inverse;  ///< Of the scale; 0 where all codes are those of 0, NaN where it is of no use.
  bool fit = true; ///< All of them are finite, and so were the values.
};

/// The smallest bf16 that is not below a value of 0 or more.
HWY_INLINE vector bf16_above(vector value) {
  const words w;
  const auto bits = hn::Add(hn::BitCast(w, value), hn::Set(w, 0xffff));
  return hn::BitCast(lanes(), hn::And(bits, hn::Set(w, upper_half)));
}

HWY_INLINE vector bf16_below(vector value) {
  const lanes d;
  const words w;
  const auto cut = hn::BitCast(d, hn::And(hn::BitCast(w, value), hn::Set(w, upper_half)));
  return hn::IfThenElse(hn::Lt(value, hn::Zero(d)), hn::Neg(bf16_above(hn::Neg(value))), cut);
}

HWY_INLINE bool all_finite(vector value) {
  const words w;
  const auto magnitude = hn::And(hn::BitCast(w, value), hn::Set(w, magnitude_bits));
  return hn::AllTrue(w, hn::Lt(magnitude, hn::Set(w, infinity_bits)));
}

HWY_INLINE vector inverse_of(vector scale) {
  const lanes d;
  // In between, nothing on the way to a code becomes too large, or so small that it loses bits.
  const auto usual =
    hn::And(hn::Ge(scale, hn::Set(d, 0x1p-100f)), hn::Le(scale, hn::Set(d, 0x1p100f)));
  const auto unusual = hn::IfThenElseZero(hn::Gt(scale, hn::Zero(d)),
                                          hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
  return hn::IfThenElse(usual, hn::Div(hn::Set(d, 1.0f), scale), unusual);
}

template <class Stored>
HWY_INLINE row_scales signed_scales(const block_columns_of<Stored>& columns) {
  const lanes d;
  const words w;
  auto largest = hn::Zero(w); // Magnitudes of floats are ordered as their bits are, NaN last.
#pragma GCC unroll 4
  for (std::size_t column = 0; column < quantised_block; ++column)
    largest =
      hn::Max(largest, hn::And(hn::BitCast(w, columns[column]), hn::Set(w, magnitude_bits)));
  const auto most = hn::BitCast(d, largest);
  row_scales made;
  made.scale = bf16_above(hn::Div(most, hn::Set(d, 127.0f)));
  made.minimum = hn::Zero(d);
  made.inverse = inverse_of(made.scale);
  made.fit = all_finite(most) && all_finite(made.scale);
  return made;
}

/// (highest - minimum) / 15, by way of doubles.
HWY_INLINE vector fifteenth(vector highest, vector minimum) {
  const lanes d;
  const hn::CappedTag<double, 8> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  HWY_ALIGN float high[lane_count], low[lane_count], step[lane_count];
  hn::Store(highest, d, high);
  hn::Store(minimum, d, low);
  for (std::size_t i = 0; i < lane_count; i += hn::MaxLanes(wide)) {
    const auto distance = hn::Sub(hn::PromoteTo(wide, hn::LoadU(narrow, high + i)),
                                  hn::PromoteTo(wide, hn::LoadU(narrow, low + i)));
    hn::StoreU(hn::DemoteTo(narrow, hn::Div(distance, hn::Set(wide, 15.0))), narrow, step + i);
  }
  return hn::Load(d, step);
}

template <class Stored>
HWY_INLINE row_scales scales_from_minimum(const block_columns_of<Stored>& columns) {
  const lanes d;
  const words w;
  auto lowest = columns[0], highest = lowest;
  auto largest = hn::Zero(w);
#pragma GCC unroll 4
  for (std::size_t column = 0; column < columns.count; ++column) {
    const auto value = columns[column];
    // Of equal ones the first and the last, as minmax_element: a zero may have either sign.
    lowest = hn::IfThenElse(hn::Lt(value, lowest), value, lowest);
    highest = hn::IfThenElse(hn::Lt(value, highest), highest, value);
    largest = hn::Max(largest, hn::And(hn::BitCast(w, value), hn::Set(w, magnitude_bits)));
  }
  row_scales made;
  made.minimum = bf16_below(lowest);
  made.scale = bf16_above(fifteenth(highest, made.minimum));
  made.inverse = inverse_of(made.scale);
  made.fit =
    all_finite(hn::BitCast(d, largest)) && all_finite(made.minimum) && all_finite(made.scale);
  return made;
}

/// The codes again where steps are too far `off` a whole number, or not numbers.
template <dtype Held>
HWY_NOINLINE word_vector divide(vector value, const row_scales& by, word_vector codes, vector off) {
  const lanes d;
  HWY_ALIGN float values[lane_count], scales[lane_count], minima[lane_count], offs[lane_count];
  HWY_ALIGN std::int32_t made[lane_count];
  hn::Store(value, d, values);
  hn::Store(by.scale, d, scales);
  hn::Store(by.minimum, d, minima);
  hn::Store(off, d, offs);
  hn::Store(codes, words(), made);
  for (std::size_t i = 0; i < lane_count; ++i)
    if (!(offs[i] <= surely_off))
      made[i] = code_of(values[i], scales[i], minima[i], Held);
  return hn::Load(words(), made);
}

/// The codes of one column.
template <dtype Held>
HWY_INLINE word_vector codes_of(vector value, const row_scales& by) {
  const lanes d;
  const words w;
  const auto rounds = hn::Set(d, 0x1.8p23f); // Leaves no room for a fraction: half to even.
  const auto steps = hn::Mul(Held == dtype::int4 ? hn::Sub(value, by.minimum) : value, by.inverse);
  const auto rounded = hn::Add(steps, rounds);
  const auto off = hn::Abs(hn::Sub(steps, hn::Sub(rounded, rounds)));
  // The whole number is in the low bits of the sum.
  auto codes = hn::BitCast(w, rounded);
  if constexpr (Held == dtype::int8)
    codes = hn::Add(codes, hn::Set(w, 128));
  codes = hn::And(codes, hn::Set(w, Held == dtype::int4 ? 0x0f : 0xff));
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(off, hn::Set(d, surely_off)))))
    return codes;
  return divide<Held>(value, by, codes, off);
}

/// The words of one quad: the codes of four columns, a byte each.
template <dtype Held, class Stored>
HWY_INLINE word_vector quad_of(const block_columns_of<Stored>& columns,
                               std::size_t quad,
                               const row_scales& by) {
  const auto codes = [&](std::size_t i) {
    const auto column = quad * 4 + i;
    // A column that is not there is a zero, which at 4 bits need not have the code 0.
    if (Held == dtype::int4 && column >= columns.count)
      return hn::Zero(words());
    return codes_of<Held>(columns[column], by);
  };
  const auto low = hn::Or(codes(0), hn::ShiftLeft<8>(codes(1)));
  const auto high = hn::Or(hn::ShiftLeft<16>(codes(2)), hn::ShiftLeft<24>(codes(3)));
  return hn::Or(low, high);
}

/// One bf16 a row.
HWY_INLINE void store_upper_half(vector value, bf16* to) {
  const words w;
  const hn::Rebind<std::uint16_t, lanes> half;
  const hn::RebindToUnsigned<lanes> wide;
  const auto upper = hn::ShiftRight<16>(hn::BitCast(wide, value));
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(w, upper)), half, reinterpret_cast<std::uint16_t*>(to));
}

/// values: [quantised_block][panel_width], zeros where there is no column or row. False when a
/// value, a scale or a minimum is not finite.
template <dtype Held, class Stored>
bool quantise_block(const Stored* values, std::size_t columns, std::size_t rows, std::byte* block) {
  const words w;
  bool fit = true;
  for (std::size_t lane = 0; lane < block_rows; lane += lane_count) {
    const block_columns_of<Stored> mine{values + lane, columns};
    const auto by = Held == dtype::int8 ? signed_scales(mine) : scales_from_minimum(mine);
    if (!by.fit) {
      fit = false;
      continue;
    }
    const auto row = hn::Iota(w, static_cast<std::int32_t>(lane));
    const auto real = hn::VecFromMask(w, hn::Lt(row, hn::Set(w, static_cast<std::int32_t>(rows))));
    constexpr auto places = Held == dtype::int4 ? block_quads / 2 : block_quads;
    for (std::size_t quad = 0; quad < places; ++quad) {
      auto word = quad_of<Held>(mine, quad, by);
      if constexpr (Held == dtype::int4)
        word = hn::Or(word, hn::ShiftLeft<4>(quad_of<Held>(mine, quad + places, by)));
      auto* at = block + (quad * block_rows + lane) * 4;
      hn::StoreU(hn::And(word, real), w, reinterpret_cast<std::int32_t*>(at));
    }
    store_upper_half(by.scale, block_scales(block, Held) + lane);
    if constexpr (Held == dtype::int4)
      store_upper_half(by.minimum, block_minima(block) + lane);
  }
  return fit;
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#endif
