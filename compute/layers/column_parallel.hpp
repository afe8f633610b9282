#pragma once
// A linear layer whose output features are dealt out: rank r of T holds its rows of the weight
// [out, in] and its part of the bias. Forward is the local product; nothing is sent. Whoever needs
// the whole output gathers it. Several layers with the same input make one: their outputs lie side
// by side. Shoeybi et al. 2019, "Megatron-LM", section 3. Contract rule 63.

#include "compute/buffer.hpp"
#include "compute/device.hpp"
#include "compute/layers/linear.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::compute {

class column_parallel {
public:
  struct part {
    std::string path;
    std::size_t width; ///< Output features of this rank.
  };

  /// Loads "<path>.weight" and, with `bias`, "<path>.bias" of all parts. contract_violation when
  /// the shard does not hold a part's output features. The device outlives the layer.
  static result<column_parallel>
  load(shard_loader& loader, device& where, const std::vector<part>& parts, bool bias);

  /// Output features of this rank, of all parts together.
  std::size_t width() const { return held_.weight->rows(); }

  /// x: [rows, in] whole; out: [rows, width()], the parts side by side.
  void forward(tensor x, tensor out) const;

private:
  column_parallel(device& where, linear held) : where_(&where), held_(std::move(held)) {}

  device* where_;
  linear held_;
};

} // namespace troupe::compute
