#include "compute/weights/convert.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace troupe::compute {

float f16_to_f32(std::uint16_t bits) noexcept {
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7e00;
  if (magnitude >= 65520.0f)
    return sign | 0x7c00;
  if (magnitude < 0x1p-14f) // subnormal: whole multiples of 2^-24
    return sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  // Dropping 13 bits of the fraction; a carry may run on into the exponent, which is right.
  const auto rebased = (bits & 0x7fffffff) - (std::uint32_t{112} << 23);
  const auto rounded = rebased + 0xfff + ((rebased >> 13) & 1);
  return sign | static_cast<std::uint16_t>(rounded >> 13);
}

float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value))
    return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

void convert_to_f32(const std::byte* data, dtype stored, std::span<float> out) noexcept {
  if (stored == dtype::f32) {
    std::memcpy(out.data(), data, out.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, data + 2 * i, 2);
    out[i] = stored == dtype::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

std::uint32_t convert_from_f32(float value, dtype type) noexcept {
  switch (type) {
  case dtype::f32: return std::bit_cast<std::uint32_t>(value);
  case dtype::f16: return f32_to_f16(value);
  case dtype::bf16: return f32_to_bf16(value);
  case dtype::int8:
  case dtype::int4: break; // Made of blocks, not of values.
  }
  return 0;
}

} // namespace troupe::compute
