#pragma once
// The gated feed-forward layer, down(silu(gate(x)) * up(x)), with its inner columns dealt out: gate
// and up are column-parallel, down is row-parallel. Shazeer 2020, "GLU Variants Improve
// Transformer".

#include "compute/architectures/decoder_spec.hpp"
#include "compute/collective.hpp"
#include "compute/layers/column_parallel.hpp"
#include "compute/layers/row_parallel.hpp"
#include "compute/layers/workspace.hpp"

#include <cstddef>
#include <string>

namespace troupe::compute {

class mlp {
public:
  /// Loads the projections under `path`, for example "model.layers.3.mlp"; this rank has `width`
  /// inner columns. The device outlives the layer.
  static result<mlp> load(shard_loader& loader,
                          device& where,
                          const decoder_spec& spec,
                          const std::string& path,
                          std::size_t width);

  /// out = residual + mlp(x). x: [rows, hidden] normalised. One all-reduce.
  result<void>
  forward(tensor x, tensor residual, tensor out, const workspace& scratch, collective& group) const;

private:
  mlp(device& where, column_parallel gate_and_up, row_parallel down);

  device* where_;
  column_parallel gate_and_up_;
  row_parallel down_;
};

} // namespace troupe::compute
