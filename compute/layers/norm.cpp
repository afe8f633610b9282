#include "compute/layers/norm.hpp"

namespace troupe::compute {

norm::norm(device& where, device_vector weight, float epsilon)
  : where_(&where), weight_(std::move(weight)), epsilon_(epsilon) {}

result<norm>
norm::load(shard_loader& loader, device& where, const std::string& path, float epsilon) {
  auto weight = loader.vector(path + ".weight");
  if (!weight)
    return weight.error();
  return norm{where, *std::move(weight), epsilon};
}

void norm::forward(tensor x, tensor out) const {
  where_->rms_norm(x, weight_.values(), epsilon_, out);
}

void norm::forward_heads(tensor x) const {
  where_->head_norm(x, weight_.size(), weight_.values(), epsilon_);
}

} // namespace troupe::compute
