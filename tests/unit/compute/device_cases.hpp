#pragma once
// What the device suites share: devices, seeded values, weights as files have them, comparisons.

#include "compute/cpu/half.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "compute/device.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace troupe {

/// For the names of data-driven cases.
inline std::ostream& operator<<(std::ostream& out, dtype type) {
  return out << to_string(type);
}

} // namespace troupe

namespace troupe::compute::cases {

inline std::unique_ptr<device> make_cpu(std::size_t threads = 1) {
  auto made = make_device("cpu", {.threads = threads, .cores = {}});
  BOOST_REQUIRE(made);
  return std::move(*made);
}

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 numbers(seed);
  std::uniform_real_distribution<float> between(-scale, scale);
  std::vector<float> values(count);
  for (auto& value : values)
    value = between(numbers);
  return values;
}

/// A weight as a file has it: any dtype, at an odd address, with room between the rows.
struct stored_weight {
  dtype stored;
  std::size_t rows, columns, stride;
  std::vector<std::byte> bytes;
  std::vector<float> values; ///< [rows][columns], what the stored elements are exactly.

  stored_weight(
    dtype type, std::size_t row_count, std::size_t column_count, unsigned seed, std::size_t gap = 0)
    : stored(type), rows(row_count), columns(column_count), stride(column_count + gap),
      bytes(row_count * stride * size_of(type) + 1, std::byte{0xff}),
      values(random_floats(rows * columns, seed)) {
    for (std::size_t i = 0; i < values.size(); ++i)
      set(i / columns, i % columns, values[i]);
  }

  void set(std::size_t row, std::size_t column, float value) {
    cpu::with_format(stored, [&](auto format) {
      const auto element = cpu::from_float<decltype(format)>(value);
      std::memcpy(
        bytes.data() + 1 + (row * stride + column) * sizeof(element), &element, sizeof(element));
      values[row * columns + column] = cpu::to_float(element);
    });
  }

  weight_source source() const {
    return {.data = bytes.data() + 1,
            .stored = stored,
            .rows = rows,
            .columns = columns,
            .stride = stride,
            .owner = nullptr};
  }
};

inline std::unique_ptr<matrix> pack(device& on, const stored_weight& weight, dtype hold) {
  auto made = on.pack(weight.source(), hold);
  BOOST_REQUIRE(made);
  return std::move(*made);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Largest |found - expected| / scale.
inline double
worst(const std::vector<float>& found, const std::vector<double>& expected, double scale) {
  BOOST_REQUIRE(found.size() == expected.size());
  double most = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double off = std::abs(found[i] - expected[i]) / scale;
    if (!(off <= most)) // A NaN counts.
      most = off;
  }
  return most;
}

/// Instruction sets with a fused multiply-add that this machine has: they must agree in each bit.
inline std::vector<std::string> fused_instruction_sets() {
  std::vector<std::string> found;
  for (const auto& name : cpu::usable_instruction_sets())
    if (name == "avx3" || name == "avx2" || name == "neon")
      found.push_back(name);
  return found;
}

/// Runs the rest of a scope with one instruction set.
class with_instruction_set {
public:
  explicit with_instruction_set(const std::string& name) {
    BOOST_REQUIRE(cpu::use_instruction_set(name));
  }

  ~with_instruction_set() { (void)static_cast<bool>(cpu::use_instruction_set("")); }
};

} // namespace troupe::compute::cases
