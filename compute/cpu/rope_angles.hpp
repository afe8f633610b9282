#pragma once
// Cosines and sines of the rotary embedding for the rows of a step, computed once for all layers.

#include "compute/device.hpp"

#include <cstdint>
#include <vector>

namespace troupe::compute::cpu {

/// The rotation of each row of a step under one table: angle = float(position) * inverse frequency
/// in f32, as the Hugging Face reference has it; cos and sin of that to the last bit, times
/// magnitude.
class rope_angles {
public:
  /// Whether these are the angles of `rows` under `table`.
  bool answers(const rope_table& table, const batch& rows) const;

  void compute(const rope_table& table, const batch& rows);

  std::size_t rows() const noexcept { return positions_.size(); }

  /// Pairs that are turned: rotary_dim / 2.
  std::size_t pairs() const noexcept { return table_.inverse_frequencies.size(); }

  const float* cosines(std::size_t row) const { return cosines_.data() + row * pairs(); }

  const float* sines(std::size_t row) const { return sines_.data() + row * pairs(); }

private:
  rope_table table_;
  std::vector<std::uint32_t> positions_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

/// The angles of the last steps. Models turn queries and keys of all layers by one table, or by two
/// where some layers attend globally and others locally.
class rope_memo {
public:
  const rope_angles& find(const rope_table& table, const batch& rows);

private:
  rope_angles kept_[2];
  std::size_t older_ = 0;
};

} // namespace troupe::compute::cpu
