#pragma once
// One product, as the threads that compute it see it.

#include "compute/cpu/execution.hpp"
#include "compute/cpu/panels.hpp"

#include <span>

namespace troupe::compute::cpu {

/// Input columns of a block: its 32 lanes of f32 weights (16 KiB) stay in the first-level cache
/// beside a tile's rows of x.
inline constexpr std::size_t block_columns = 128;

/// What the threads of one product share.
struct matmul_job {
  execution* on;
  const panel_matrix* weights;
  tensor x;
  std::span<const float> bias;
  tensor out;
  tensor added; ///< Without data: nothing is added.
  /// x by blocks of columns and tiles of rows, those of a tile side by side; quantised for weights
  /// that are.
  float* tiles;
  std::size_t group_panels; ///< Panels whose sums are kept while the blocks of columns pass.

  std::size_t columns() const noexcept { return weights->columns(); }

  /// Multiply-adds.
  std::size_t elements() const noexcept { return x.rows * weights->rows() * columns(); }
};

/// For weights in blocks; lays out x by itself.
void matmul_blocks(matmul_job& job);

} // namespace troupe::compute::cpu
