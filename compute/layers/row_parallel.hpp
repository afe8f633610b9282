#pragma once
// A linear layer whose input features are dealt out: rank r of T holds its columns of the weight
// [out, in] and gets only its slice of the input. The local products are summed over the group; the
// bias, whole on every rank, is added once, after the sum. Shoeybi et al. 2019, "Megatron-LM",
// section 3. Contract rule 64.

#include "compute/buffer.hpp"
#include "compute/collective.hpp"
#include "compute/device.hpp"
#include "compute/layers/linear.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <string>

namespace troupe::compute {

class row_parallel {
public:
  /// Loads "<path>.weight" and, with `bias`, "<path>.bias". contract_violation when the shard does
  /// not take `width` input features. The device outlives the layer.
  static result<row_parallel>
  load(shard_loader& loader, device& where, const std::string& path, std::size_t width, bool bias);

  /// Input features of this rank.
  std::size_t width() const { return held_.weight->columns(); }

  /// out = residual + (sum over the group of x W^T) + bias. x: [rows, width()], this rank's slice;
  /// residual, out: [rows, out], different memory, out without gaps; the result is the same on
  /// every rank. One all-reduce. Errors are those of the collective.
  result<void> forward(tensor x, tensor residual, tensor out, collective& group) const;

private:
  row_parallel(device& where, linear held) : where_(&where), held_(std::move(held)) {}

  device* where_;
  linear held_;
};

} // namespace troupe::compute
