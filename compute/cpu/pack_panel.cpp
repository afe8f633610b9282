// 32 columns of a panel at a time: transposed as they are stored, then converted or quantised.

#include "compute/cpu/pack_panel.hpp"

#include "compute/cpu/half.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/pack_panel.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/quantise-inl.hpp"
#include "compute/cpu/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

namespace {

template <class Format>
using bits_of = std::conditional_t<sizeof(Format) == 4, std::uint32_t, std::uint16_t>;

/// Blocks of 32 columns of a panel's rows, as `Stored`.
template <class Stored>
class stored_blocks {
public:
  explicit stored_blocks(const panel_rows& from) : from_(from) {
    for (std::size_t row = 0; row < from.count; ++row)
      in_place_ &= std::is_same_v<Stored, float> ? from.row[row].stored == dtype::f32 : true;
    in_place_ &= from.count == panel_width;
  }

  /// Columns [begin, begin + count) -> [pack_columns][panel_width]; zeros where there is none.
  HWY_INLINE void transpose_to(std::size_t begin, std::size_t count, Stored* out) {
    const std::byte* rows[panel_width];
    if (in_place_ && count == pack_columns) {
      for (std::size_t row = 0; row < panel_width; ++row)
        rows[row] = from_.row[row].data + begin * sizeof(Stored);
    } else {
      copy(begin, count);
      for (std::size_t row = 0; row < panel_width; ++row)
        rows[row] = reinterpret_cast<const std::byte*>(copied_[row]);
    }
    transpose(rows, reinterpret_cast<bits_of<Stored>*>(out));
  }

private:
  void copy(std::size_t begin, std::size_t count) {
    for (std::size_t row = 0; row < from_.count; ++row)
      with_format(from_.row[row].stored, [&](auto format) {
        using stored = decltype(format);
        const auto* at = from_.row[row].data + begin * sizeof(stored);
        if constexpr (std::is_same_v<stored, Stored>)
          std::memcpy(copied_[row], at, count * sizeof(Stored));
        else if constexpr (std::is_same_v<Stored, float>)
          for (std::size_t i = 0; i < count; ++i)
            copied_[row][i] = to_float(load_element<stored>(at, i));
      });
    for (auto& row : copied_)
      std::fill(row + count, row + pack_columns, Stored{});
  }

  const panel_rows& from_;
  bool in_place_ = true;
  Stored copied_[panel_width][pack_columns] = {}; ///< Rows that are not as wanted, or not all.
};

HWY_INLINE vector load_exactly(lanes d, const float* from) {
  return hn::LoadU(d, from);
}

HWY_INLINE vector load_exactly(lanes d, const bf16* from) {
  return load_weights(d, from);
}

/// As to_float(f16): an instruction would change what a NaN carries.
HWY_INLINE vector load_exactly(lanes d, const f16* from) {
  const hn::Rebind<std::uint16_t, lanes> half;
  return widen_f16(d, hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(from)));
}

/// The same arithmetic as from_float(): bits of floats -> those of the format, in the low half.
HWY_INLINE word_vector round_bits(words w, word_vector bits, bf16) {
  const hn::RebindToUnsigned<lanes> u;
  const auto upper = hn::BitCast(w, hn::ShiftRight<16>(hn::BitCast(u, bits)));
  const auto nearest = hn::Add(hn::Set(w, 0x7fff), hn::And(upper, hn::Set(w, 1)));
  const auto rounded = hn::ShiftRight<16>(hn::BitCast(u, hn::Add(bits, nearest)));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(w, magnitude_bits)), hn::Set(w, infinity_bits));
  return hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(w, 0x40)), hn::BitCast(w, rounded));
}

HWY_INLINE word_vector round_bits(words w, word_vector bits, f16) {
  const lanes d;
  const auto magnitude = hn::And(bits, hn::Set(w, magnitude_bits));
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(w, 0x8000));
  const auto small = hn::Sub(hn::BitCast(w, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f))),
                             hn::Set(w, 0x3f000000));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(w, 1));
  const auto usual = hn::ShiftRight<13>(
    hn::Add(hn::Sub(magnitude, hn::Set(w, 0x38000000)), hn::Add(hn::Set(w, 0xfff), odd)));
  auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 0x38800000)), small, usual);
  half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 0x47800000)), half, hn::Set(w, 0x7c00));
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(w, infinity_bits)), hn::Set(w, 0x7e00), half);
  return hn::Or(half, sign);
}

/// `count` elements, whole vectors; false when a finite one is too large.
template <class Stored, class Held>
HWY_INLINE bool convert(const Stored* from, std::size_t count, Held* to) {
  const lanes d;
  const words w;
  const hn::Rebind<std::uint16_t, lanes> half;
  if constexpr (std::is_same_v<Held, float>) {
    for (std::size_t i = 0; i < count; i += lane_count)
      hn::StoreU(load_exactly(d, from + i), d, to + i);
    return true;
  } else {
    const auto infinite = hn::Set(w, from_float<Held>(std::numeric_limits<float>::infinity()).bits);
    auto fit = hn::Eq(hn::Zero(w), hn::Zero(w));
    for (std::size_t i = 0; i < count; i += lane_count) {
      const auto bits = hn::BitCast(w, load_exactly(d, from + i));
      const auto made = round_bits(w, bits, Held{});
      const auto was = hn::And(bits, hn::Set(w, magnitude_bits));
      fit = hn::And(fit,
                    hn::Or(hn::Lt(hn::And(made, hn::Set(w, 0x7fff)), infinite),
                           hn::Gt(was, hn::Set(w, infinity_bits - 1))));
      hn::StoreU(hn::DemoteTo(half, made), half, reinterpret_cast<std::uint16_t*>(to + i));
    }
    return hn::AllTrue(w, fit);
  }
}

template <class Stored, class Held>
bool pack_elements(const panel_rows& from, Held* out) {
  stored_blocks<Stored> blocks(from);
  HWY_ALIGN Stored block[pack_columns * panel_width];
  bool fit = true;
  for (std::size_t begin = 0; begin < from.columns; begin += pack_columns) {
    const auto count = std::min(pack_columns, from.columns - begin);
    auto* to = out + begin * panel_width;
    if (std::is_same_v<Stored, Held> && count == pack_columns) {
      blocks.transpose_to(begin, count, reinterpret_cast<Stored*>(to));
      continue;
    }
    blocks.transpose_to(begin, count, block);
    if constexpr (std::is_same_v<Stored, Held>)
      std::memcpy(to, block, count * panel_width * sizeof(Held));
    else
      fit &= convert(block, count * panel_width, to);
  }
  return fit;
}

template <class Stored, dtype Held>
bool pack_blocks(const panel_rows& from, std::byte* out) {
  stored_blocks<Stored> blocks(from);
  HWY_ALIGN Stored block[pack_columns * panel_width];
  bool fit = true;
  for (std::size_t begin = 0; begin < from.columns;
       begin += quantised_block, out += panel_block_bytes(Held)) {
    const auto count = std::min(quantised_block, from.columns - begin);
    blocks.transpose_to(begin, count, block);
    fit &= quantise_block<Held>(block, count, from.count, out);
  }
  return fit;
}

template <class Stored>
bool pack_stored(const panel_rows& from, dtype held, std::byte* panel) {
  if (held == dtype::int8)
    return pack_blocks<Stored, dtype::int8>(from, panel);
  if (held == dtype::int4)
    return pack_blocks<Stored, dtype::int4>(from, panel);
  return with_format(held, [&](auto format) {
    return pack_elements<Stored>(from, reinterpret_cast<decltype(format)*>(panel));
  });
}

} // namespace

bool pack_panel_here(const panel_rows& from, dtype held, std::byte* panel) {
  const auto stored = from.row[0].stored;
  const bool alike = std::all_of(
    from.row, from.row + from.count, [&](const auto& row) { return row.stored == stored; });
  // What is stored in several ways meets in f32, which has every value of each.
  return with_format(alike ? stored : dtype::f32,
                     [&](auto format) { return pack_stored<decltype(format)>(from, held, panel); });
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(pack_panel_here);

bool pack_panel(const panel_rows& from, dtype held, std::byte* panel) {
  return HWY_DYNAMIC_DISPATCH(pack_panel_here)(from, held, panel);
}

} // namespace troupe::compute::cpu

#endif
