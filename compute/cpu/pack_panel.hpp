#pragma once
// One panel of a weight, from its rows as they are stored.

#include "compute/cpu/panels.hpp"
#include "config/dtype.hpp"

#include <cstddef>

namespace troupe::compute::cpu {

/// Columns that are packed at a time: a block of those that are quantised.
inline constexpr std::size_t pack_columns = quantised_block;

/// The rows of one panel, each in the source that has it.
struct panel_rows {
  struct stored_row {
    const std::byte* data = nullptr; ///< Column 0; unaligned.
    dtype stored = dtype::f32;
  };

  stored_row row[panel_width];
  std::size_t count = 0; ///< Rows that there are; the others of the panel become zeros.
  std::size_t columns = 0;
};

/// Converts or quantises, and lays out as a panel. The bits are those of half.hpp and blocks.hpp,
/// whatever the instruction set. False when a value cannot be held so: the panel is not to be used
/// then.
bool pack_panel(const panel_rows& from, dtype held, std::byte* panel);

} // namespace troupe::compute::cpu
