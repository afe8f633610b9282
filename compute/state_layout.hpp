#pragma once
// Layout of a partition's state: one segment a layer, by local ordinal. Contract rules 9 to 11, 25.

#include "config/dtype.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::compute {

struct state_segment {
  std::string name; ///< For example "layer.7.kv".
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t window = 0;  ///< Positions that the layer looks back; 0 = all.
  dtype held = dtype::f32; ///< Of keys and values: f32, f16 or bf16.

  friend bool operator==(const state_segment&, const state_segment&) = default;
};

struct state_layout {
  std::size_t first_unit = 0; ///< Global index of segment 0, carried beside the local ordinals.
  std::vector<state_segment> segments = {};

  friend bool operator==(const state_layout&, const state_layout&) = default;
};

} // namespace troupe::compute
