#include "compute/layers/row_parallel.hpp"

#include <fmt/core.h>

namespace troupe::compute {

row_parallel::row_parallel(device& where, std::unique_ptr<matrix> weight, device_vector bias)
  : where_(&where), weight_(std::move(weight)), bias_(std::move(bias)) {}

result<row_parallel> row_parallel::load(
  shard_loader& loader, device& where, const std::string& path, std::size_t width, bool bias) {
  const auto held = loader.describe(path + ".weight").columns.size();
  if (held != width)
    return error{errc::contract_violation,
                 fmt::format("row-parallel layer '{}': the shard takes {} input features, the "
                             "rank's slice has {}",
                             path,
                             held,
                             width)};
  auto weight = loader.packed(path + ".weight");
  if (!weight)
    return weight.error();
  device_vector whole_bias;
  if (bias) {
    auto loaded = loader.vector(path + ".bias");
    if (!loaded)
      return loaded.error();
    whole_bias = *std::move(loaded);
  }
  return row_parallel{where, *std::move(weight), std::move(whole_bias)};
}

result<void> row_parallel::forward(tensor x, tensor residual, tensor out, collective& group) const {
  where_->matmul(*weight_, x, {}, out, false);
  if (group.size() > 1) {
    where_->synchronise();
    if (auto summed = group.all_reduce_sum({out.data, out.rows * out.columns}); !summed)
      return summed;
  }
  if (const auto bias = bias_.values(); !bias.empty()) {
    // A view whose rows are all the same row.
    const tensor repeated(const_cast<float*>(bias.data()), out.rows, out.columns, 0);
    where_->add(repeated, out);
  }
  where_->add(residual, out);
  return {};
}

} // namespace troupe::compute
