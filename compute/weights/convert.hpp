#pragma once
// Elements of stored weights, converted one by one. For vectors and for files that we write; the
// devices have kernels of their own for matrices.

#include "config/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::compute {

/// Exact.
float f16_to_f32(std::uint16_t bits) noexcept;

/// To the nearest, ties to even; too large becomes infinite.
std::uint16_t f32_to_f16(float value) noexcept;

/// Exact.
float bf16_to_f32(std::uint16_t bits) noexcept;

/// To the nearest, ties to even.
std::uint16_t f32_to_bf16(float value) noexcept;

/// out.size() elements of type `stored` at `data`, which need not be aligned.
void convert_to_f32(const std::byte* data, dtype stored, std::span<float> out) noexcept;

/// The bits of `value` as `type`, in the low bytes.
std::uint32_t convert_from_f32(float value, dtype type) noexcept;

} // namespace troupe::compute
