#include "compute/layers/column_parallel.hpp"

#include <fmt/core.h>

namespace troupe::compute {

result<column_parallel> column_parallel::load(shard_loader& loader,
                                              device& where,
                                              const std::vector<part>& parts,
                                              bool bias) {
  std::vector<std::string> paths;
  for (const auto& [path, width] : parts) {
    const auto held = loader.describe(path + ".weight").rows.size();
    if (held != width)
      return error{errc::contract_violation,
                   fmt::format("column-parallel layer '{}': the shard holds {} output features, "
                               "the rank owns {}",
                               path,
                               held,
                               width)};
    paths.push_back(path);
  }
  auto held = linear::load(loader, paths, bias);
  if (!held)
    return held.error();
  return column_parallel{where, *std::move(held)};
}

void column_parallel::forward(tensor x, tensor out) const {
  where_->matmul(*held_.weight, x, held_.bias.values(), out, {});
}

} // namespace troupe::compute
