#pragma once
// A linear layer whose output features are dealt out: rank r of T holds its rows of the weight
// [out, in] and its part of the bias. Forward is the local product; nothing is sent. Whoever needs
// the whole output gathers it. Shoeybi et al. 2019, "Megatron-LM", section 3. Contract rule 63.

#include "compute/buffer.hpp"
#include "compute/device.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::compute {

class column_parallel {
public:
  /// Loads "<path>.weight" and, with `bias`, "<path>.bias". contract_violation when the shard does
  /// not hold `width` output features. The device outlives the layer.
  static result<column_parallel>
  load(shard_loader& loader, device& where, const std::string& path, std::size_t width, bool bias);

  /// Output features of this rank.
  std::size_t width() const { return weight_->rows(); }

  /// x: [rows, in] whole; out: [rows, width()].
  void forward(tensor x, tensor out) const;

private:
  column_parallel(device& where, std::unique_ptr<matrix> weight, device_vector bias);

  device* where_;
  std::unique_ptr<matrix> weight_;
  device_vector bias_; // [width] or empty
};

} // namespace troupe::compute
