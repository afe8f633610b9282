#pragma once
// Element types of weights, activations and wires.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe {

enum class dtype : std::uint8_t { f32, f16, bf16 };

/// Bytes of one element.
constexpr std::size_t size_of(dtype type) noexcept {
  return type == dtype::f32 ? 4 : 2;
}

constexpr std::string_view to_string(dtype type) noexcept {
  switch (type) {
  case dtype::f32: return "f32";
  case dtype::f16: return "f16";
  case dtype::bf16: return "bf16";
  }
  return "unknown";
}

} // namespace troupe
