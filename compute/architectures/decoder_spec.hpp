#pragma once
// Everything that decoders of the known families can differ in. A family fills it in from its
// config; compute/architectures/decoder.hpp runs it.

#include "compute/device.hpp"
#include "compute/model.hpp"

#include <vector>

namespace troupe::compute {

struct decoder_spec {
  model_shape shape;
  float norm_eps = 0;
  rope_table rope;
  bool input_bias = false;  ///< On the query, key and value projections.
  bool output_bias = false; ///< On the attention's output projection.
  bool mlp_bias = false;    ///< On gate, up and down.
  bool head_norm = false;   ///< Queries and keys are normalised head by head before rotation.
  std::vector<std::size_t> windows; ///< Per layer: positions that it looks back; 0 = all.
};

} // namespace troupe::compute
