#include "compute/cpu/rope_angles.hpp"

#include <cmath>

namespace troupe::compute::cpu {

bool rope_angles::answers(const rope_table& table, const batch& rows) const {
  if (positions_.empty() || positions_.size() != rows.rows())
    return false;
  if (table.magnitude != table_.magnitude
      || table.inverse_frequencies != table_.inverse_frequencies)
    return false;
  for (const auto& sequence : rows.sequences)
    for (std::uint32_t i = 0; i < sequence.count; ++i)
      if (positions_[sequence.first_row + i] != sequence.position + i)
        return false;
  return true;
}

void rope_angles::compute(const rope_table& table, const batch& rows) {
  table_ = table;
  positions_.assign(rows.rows(), 0);
  cosines_.resize(rows.rows() * pairs());
  sines_.resize(rows.rows() * pairs());
  for (const auto& sequence : rows.sequences) {
    for (std::uint32_t i = 0; i < sequence.count; ++i) {
      const std::size_t row = sequence.first_row + i;
      positions_[row] = sequence.position + i;
      for (std::size_t pair = 0; pair < pairs(); ++pair) {
        const float angle = static_cast<float>(positions_[row]) * table.inverse_frequencies[pair];
        // In double, so that the rounded value does not depend on the quality of cosf.
        cosines_[row * pairs() + pair] =
          static_cast<float>(std::cos(double{angle})) * table.magnitude;
        sines_[row * pairs() + pair] =
          static_cast<float>(std::sin(double{angle})) * table.magnitude;
      }
    }
  }
}

const rope_angles& rope_memo::find(const rope_table& table, const batch& rows) {
  for (const auto& angles : kept_)
    if (angles.answers(table, rows))
      return angles;
  auto& replaced = kept_[older_];
  older_ = 1 - older_;
  replaced.compute(table, rows);
  return replaced;
}

} // namespace troupe::compute::cpu
