#include "compute/cpu/blocks.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::compute::cpu {

namespace {

/// The smallest bf16 that is not below a positive finite value.
float bf16_above(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xffffu) & 0xffff0000u);
}

float bf16_below(float value) {
  return value < 0.0f ? -bf16_above(-value)
                      : std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000u);
}

std::uint8_t round_steps(float steps, float lowest, float highest, float zero) {
  // Adding 1.5 * 2^23 leaves no room for a fraction: the addition rounds, half to even.
  constexpr float rounds = 0x1.8p23f;
  const float whole = (std::clamp(steps, lowest, highest) + rounds) - rounds;
  return static_cast<std::uint8_t>(static_cast<int>(whole + zero));
}

quantised_row quantise_signed(std::span<const float> values) {
  quantised_row made;
  float largest = 0.0f;
  for (float value : values)
    largest = std::max(largest, std::abs(value));
  made.scale = bf16_above(largest / 127.0f);
  std::fill_n(made.codes, quantised_block, std::uint8_t{128});
  for (std::size_t i = 0; i < values.size() && made.scale > 0.0f; ++i)
    made.codes[i] = code_of(values[i], made.scale, made.minimum, dtype::int8);
  return made;
}

quantised_row quantise_from_minimum(std::span<const float> values) {
  quantised_row made;
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  made.minimum = bf16_below(*lowest);
  // In double: the distance of two floats may be more than a float holds.
  const double step = (double{*highest} - double{made.minimum}) / 15.0;
  made.scale = bf16_above(static_cast<float>(step));
  for (std::size_t i = 0; i < values.size() && made.scale > 0.0f; ++i)
    made.codes[i] = code_of(values[i], made.scale, made.minimum, dtype::int4);
  return made;
}

/// The byte of a code, and the bits that it is shifted by.
struct code_place {
  std::size_t byte;
  unsigned shift;
};

code_place place_of(dtype held, std::size_t row, std::size_t column) {
  auto quad = column / 4;
  unsigned shift = 0;
  if (held == dtype::int4) {
    shift = quad < block_quads / 2 ? 0 : 4;
    quad %= block_quads / 2;
  }
  return {(quad * block_rows + row) * 4 + column % 4, shift};
}

} // namespace

std::uint8_t code_of(float value, float scale, float minimum, dtype held) {
  if (held == dtype::int8)
    return round_steps(value / scale, -127.0f, 127.0f, 128.0f);
  const double steps = (double{value} - double{minimum}) / double{scale};
  return round_steps(static_cast<float>(steps), 0.0f, 15.0f, 0.0f);
}

quantised_row quantise(std::span<const float> values, dtype held) {
  return held == dtype::int8 ? quantise_signed(values) : quantise_from_minimum(values);
}

void put_row(std::byte* block, dtype held, std::size_t row, const quantised_row& values) {
  block_scales(block, held)[row] = from_float<bf16>(values.scale);
  if (held == dtype::int4)
    block_minima(block)[row] = from_float<bf16>(values.minimum);
  const auto quads = held == dtype::int4 ? block_quads / 2 : block_quads;
  for (std::size_t quad = 0; quad < quads; ++quad)
    for (std::size_t i = 0; i < 4; ++i) {
      auto code = values.codes[quad * 4 + i];
      if (held == dtype::int4)
        code = static_cast<std::uint8_t>(code | values.codes[(quad + quads) * 4 + i] << 4);
      block[(quad * block_rows + row) * 4 + i] = std::byte{code};
    }
}

float read_value(const std::byte* block, dtype held, std::size_t row, std::size_t column) {
  auto* mutable_block = const_cast<std::byte*>(block); // Only read here.
  const auto [byte, shift] = place_of(held, row, column);
  const float scale = to_float(block_scales(mutable_block, held)[row]);
  const auto code = std::to_integer<int>(block[byte]) >> shift;
  if (held == dtype::int8)
    return scale * static_cast<float>(code - 128);
  return scale * static_cast<float>(code & 15) + to_float(block_minima(mutable_block)[row]);
}

} // namespace troupe::compute::cpu
