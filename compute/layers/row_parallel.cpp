#include "compute/layers/row_parallel.hpp"

#include <fmt/core.h>

namespace troupe::compute {

result<row_parallel> row_parallel::load(
  shard_loader& loader, device& where, const std::string& path, std::size_t width, bool bias) {
  const auto taken = loader.describe(path + ".weight").columns.size();
  if (taken != width)
    return error{errc::contract_violation,
                 fmt::format("row-parallel layer '{}': the shard takes {} input features, the "
                             "rank's slice has {}",
                             path,
                             taken,
                             width)};
  auto held = linear::load(loader, {path}, bias);
  if (!held)
    return held.error();
  return row_parallel{where, *std::move(held)};
}

result<void> row_parallel::forward(tensor x, tensor residual, tensor out, collective& group) const {
  const auto bias = held_.bias.values();
  if (group.size() == 1) { // The same sums in the same order, without passes of their own.
    where_->matmul(*held_.weight, x, bias, out, residual);
    return {};
  }
  where_->matmul(*held_.weight, x, {}, out, {});
  where_->synchronise();
  if (auto summed = group.all_reduce_sum({out.data, out.rows * out.columns}); !summed)
    return summed;
  if (!bias.empty()) {
    // A view whose rows are all the same row.
    const tensor repeated(const_cast<float*>(bias.data()), out.rows, out.columns, 0);
    where_->add(repeated, out);
  }
  where_->add(residual, out);
  return {};
}

} // namespace troupe::compute
