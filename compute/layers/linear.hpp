#pragma once
// What column- and row-parallel layers hold: a weight, and a bias or none. Layers that have the
// same input are loaded as one, so that one product does the work of all.

#include "compute/device.hpp"
#include "compute/weights/shard_loader.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace troupe::compute {

struct linear {
  std::shared_ptr<const matrix> weight;
  device_vector bias; ///< A value for each row of the weight, or empty.

  /// Loads "<path>.weight" and, with `bias`, "<path>.bias" of each path, rows one after the other.
  static result<linear>
  load(shard_loader& loader, const std::vector<std::string>& paths, bool with_bias);
};

} // namespace troupe::compute
