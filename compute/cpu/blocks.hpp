#pragma once
// Weights of 8 and 4 bits: blocks of 32 input columns of one row share a scale (and, at 4 bits, a
// minimum), kept as bf16. Rounding a scale up to bf16 before it is used costs half a percent of a
// step, holds every magnitude that f32 has, and needs two bytes.
//
//   int8   value = scale * (code - 128)         code 1 ... 255     34 bytes a block of 32
//   int4   value = scale * code + minimum       code 0 ... 15      20 bytes
//
// A panel has its blocks one after the other. A block of a panel is [quad][row][4 columns] of codes
// for its 32 rows, so that a vector holds four neighbouring columns of neighbouring rows, what a
// dot-product instruction adds up; then the 32 scales; then, at 4 bits, the 32 minima. At 4 bits
// quad q is in the low halves of the bytes of place q % 4 for q < 4 and in the high ones otherwise.
//
// quantise() says what a block is, one value at a time; weights are packed by quantise-inl.hpp, in
// vectors, to the same bits.

#include "compute/cpu/half.hpp"

#include <cstdint>
#include <span>

namespace troupe::compute::cpu {

inline constexpr std::size_t block_quads = quantised_block / 4;
inline constexpr std::size_t block_rows = 32; ///< Those of a panel.

/// Bytes of codes, and of everything, in a block of a panel.
constexpr std::size_t code_bytes(dtype held) {
  return block_rows * quantised_block / (held == dtype::int4 ? 2 : 1);
}

constexpr std::size_t panel_block_bytes(dtype held) {
  return code_bytes(held) + block_rows * sizeof(bf16) * (held == dtype::int4 ? 2 : 1);
}

/// Scales and minima of a block of a panel, 32 each.
inline bf16* block_scales(std::byte* block, dtype held) {
  return reinterpret_cast<bf16*>(block + code_bytes(held));
}

inline bf16* block_minima(std::byte* block) {
  return block_scales(block, dtype::int4) + block_rows;
}

/// One block of one row: its code for each column.
struct quantised_row {
  float scale = 0.0f;
  float minimum = 0.0f; ///< int4 only.
  std::uint8_t codes[quantised_block] = {};
};

/// The block nearest to `values` (32 of them at most; the rest counts as 0). All are finite.
quantised_row quantise(std::span<const float> values, dtype held);

/// The code of one finite value in a block of this scale, which is more than 0.
std::uint8_t code_of(float value, float scale, float minimum, dtype held);

/// Writes a row's block into a block of a panel, and reads one code back.
void put_row(std::byte* block, dtype held, std::size_t row, const quantised_row& values);
float read_value(const std::byte* block, dtype held, std::size_t row, std::size_t column);

} // namespace troupe::compute::cpu
