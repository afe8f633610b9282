#pragma once
// Element types of weights, activations and wires.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

/// int8 and int4 are for weights in memory only: blocks of quantised_block neighbouring input
/// columns that share a scale (and a minimum, at 4 bits). They are made at load, from what is
/// stored as one of the others.
enum class dtype : std::uint8_t { f32, f16, bf16, int8, int4 };

inline constexpr std::size_t quantised_block = 32;

constexpr bool is_quantised(dtype type) noexcept {
  return type == dtype::int8 || type == dtype::int4;
}

/// Bytes of one element; 0 for those that come in blocks.
constexpr std::size_t size_of(dtype type) noexcept {
  return is_quantised(type) ? 0 : type == dtype::f32 ? 4 : 2;
}

/// Bytes of a weight of [rows, columns] that is held as `type`. A block has 32 codes and a scale of
/// 2 bytes, at 4 bits a minimum of 2 more; a row ends with a whole block.
constexpr std::size_t held_bytes(dtype type, std::size_t rows, std::size_t columns) noexcept {
  if (!is_quantised(type))
    return rows * columns * size_of(type);
  const auto blocks = (columns + quantised_block - 1) / quantised_block;
  return rows * blocks * (type == dtype::int8 ? quantised_block + 2 : quantised_block / 2 + 4);
}

constexpr std::string_view to_string(dtype type) noexcept {
  switch (type) {
  case dtype::f32: return "f32";
  case dtype::f16: return "f16";
  case dtype::bf16: return "bf16";
  case dtype::int8: return "int8";
  case dtype::int4: return "int4";
  }
  return "unknown";
}

} // namespace troupe
