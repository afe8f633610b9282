#pragma once
// The 16-bit floating point formats, converted one value at a time with the same results as the
// hardware: round to nearest even, subnormals kept, infinities and NaNs carried over. Kernels
// convert in vectors; this is for packing and look-ups.

#include "config/check.hpp"
#include "config/dtype.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::compute::cpu {

/// IEEE 754 binary16.
struct f16 {
  std::uint16_t bits = 0;
};

/// The upper half of an IEEE 754 binary32.
struct bf16 {
  std::uint16_t bits = 0;
};

inline float to_float(float value) noexcept {
  return value;
}

inline float to_float(bf16 value) noexcept {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

/// The exponent is re-based by a multiplication with 2^112, which also normalises subnormals.
inline float to_float(f16 value) noexcept {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t shifted = (value.bits & 0x7fffu) << 13;
  const std::uint32_t special = (value.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  const float rebased = std::bit_cast<float>(shifted) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rebased) | special | sign);
}

template <class Format>
Format from_float(float value) noexcept;

template <>
inline float from_float<float>(float value) noexcept {
  return value;
}

template <>
inline bf16 from_float<bf16>(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) // A NaN stays one when its low half is cut off.
    return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <>
inline f16 from_float<f16>(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x47800000u) { // 65536 and more
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {
    // Subnormal in 16 bits: adding 1/2 lets the addition of the hardware round at 2^-24.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  return {static_cast<std::uint16_t>(half | sign)};
}

/// Element `index` of stored elements at an address without alignment.
template <class Format>
Format load_element(const std::byte* elements, std::size_t index) noexcept {
  Format value;
  std::memcpy(&value, elements + index * sizeof(Format), sizeof(Format));
  return value;
}

/// Calls f(Format{}) with the C++ type of the dtype.
template <class F>
decltype(auto) with_format(dtype type, F&& f) {
  switch (type) {
  case dtype::f16: return f(f16{});
  case dtype::bf16: return f(bf16{});
  case dtype::f32: break;
  case dtype::int8:
  case dtype::int4: check(false, "blocks of weights have no element type");
  }
  return f(float{});
}

} // namespace troupe::compute::cpu
