#include "compute/layers/column_parallel.hpp"

#include <fmt/core.h>

namespace troupe::compute {

column_parallel::column_parallel(device& where, std::unique_ptr<matrix> weight, device_vector bias)
  : where_(&where), weight_(std::move(weight)), bias_(std::move(bias)) {}

result<column_parallel> column_parallel::load(
  shard_loader& loader, device& where, const std::string& path, std::size_t width, bool bias) {
  const auto held = loader.describe(path + ".weight").rows.size();
  if (held != width)
    return error{errc::contract_violation,
                 fmt::format("column-parallel layer '{}': the shard holds {} output features, the "
                             "rank owns {}",
                             path,
                             held,
                             width)};
  auto weight = loader.packed(path + ".weight");
  if (!weight)
    return weight.error();
  device_vector local_bias;
  if (bias) {
    auto loaded = loader.vector(path + ".bias");
    if (!loaded)
      return loaded.error();
    local_bias = *std::move(loaded);
  }
  return column_parallel{where, *std::move(weight), std::move(local_bias)};
}

void column_parallel::forward(tensor x, tensor out) const {
  where_->matmul(*weight_, x, bias_.values(), out, false);
}

} // namespace troupe::compute
