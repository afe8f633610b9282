#pragma once
// Rotary embedding as config.json asks for it, resolved to frequencies. Su et al. 2021, "RoFormer";
// the scalings as in transformers' modeling_rope_utils: linear, dynamic NTK, llama3, yarn.

#include "compute/device.hpp"
#include "compute/weights/json_object.hpp"

#include <cstddef>

namespace troupe::compute {

struct resolved_rope {
  rope_table table;
  std::size_t context = 0; ///< Positions that the model is made for, scaling included.
};

/// Reads the old keys ("rope_theta", "rope_scaling" with "type" or "rope_type") and the new block
/// ("rope_parameters"). Where both are given they have to mean the same. A key or type that is not
/// understood is remembered by `config` as a failure: a frequency is never a guess.
///
/// Dynamic NTK changes its frequencies with the length of a sequence once that passes
/// max_position_embeddings, so a row's result would depend on rows that come later. Within
/// max_position_embeddings it equals plain rope: that is what is computed, and the context ends
/// there.
resolved_rope read_rope(const json_object& config, std::size_t head_dim);

} // namespace troupe::compute
