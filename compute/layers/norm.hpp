#pragma once
// Root-mean-square normalisation with a learned scale, whole on every rank. Zhang and Sennrich
// 2019, "Root Mean Square Layer Normalization".

#include "compute/buffer.hpp"
#include "compute/device.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <string>

namespace troupe::compute {

class norm {
public:
  /// Loads "<path>.weight". The device outlives the layer.
  static result<norm>
  load(shard_loader& loader, device& where, const std::string& path, float epsilon);

  /// Each row by itself; x, out: [rows, width], may be the same.
  void forward(tensor x, tensor out) const;

  /// Each head of each row by itself, in place; the weight has one head's width.
  void forward_heads(tensor x) const;

private:
  norm(device& where, device_vector weight, float epsilon);

  device* where_;
  device_vector weight_;
  float epsilon_;
};

} // namespace troupe::compute
