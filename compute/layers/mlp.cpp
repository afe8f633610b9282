#include "compute/layers/mlp.hpp"

namespace troupe::compute {

mlp::mlp(device& where, column_parallel gate, column_parallel up, row_parallel down)
  : where_(&where), gate_(std::move(gate)), up_(std::move(up)), down_(std::move(down)) {}

result<mlp> mlp::load(shard_loader& loader,
                      device& where,
                      const decoder_spec& spec,
                      const std::string& path,
                      std::size_t width) {
  auto gate = column_parallel::load(loader, where, path + ".gate_proj", width, spec.mlp_bias);
  if (!gate)
    return gate.error();
  auto up = column_parallel::load(loader, where, path + ".up_proj", width, spec.mlp_bias);
  if (!up)
    return up.error();
  auto down = row_parallel::load(loader, where, path + ".down_proj", width, spec.mlp_bias);
  if (!down)
    return down.error();
  return mlp{where, *std::move(gate), *std::move(up), *std::move(down)};
}

result<void> mlp::forward(
  tensor x, tensor residual, tensor out, const workspace& scratch, collective& group) const {
  const auto gate = scratch.gate(x.rows);
  const auto up = scratch.up(x.rows);
  gate_.forward(x, gate);
  up_.forward(x, up);
  where_->silu_mul(gate, up, gate);
  return down_.forward(gate, residual, out, group);
}

} // namespace troupe::compute
