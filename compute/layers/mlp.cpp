#include "compute/layers/mlp.hpp"

namespace troupe::compute {

mlp::mlp(device& where, column_parallel gate_and_up, row_parallel down)
  : where_(&where), gate_and_up_(std::move(gate_and_up)), down_(std::move(down)) {}

result<mlp> mlp::load(shard_loader& loader,
                      device& where,
                      const decoder_spec& spec,
                      const std::string& path,
                      std::size_t width) {
  auto gate_and_up = column_parallel::load(
    loader, where, {{path + ".gate_proj", width}, {path + ".up_proj", width}}, spec.mlp_bias);
  if (!gate_and_up)
    return gate_and_up.error();
  auto down = row_parallel::load(loader, where, path + ".down_proj", width, spec.mlp_bias);
  if (!down)
    return down.error();
  return mlp{where, *std::move(gate_and_up), *std::move(down)};
}

result<void> mlp::forward(
  tensor x, tensor residual, tensor out, const workspace& scratch, collective& group) const {
  const auto gate = scratch.gate(x.rows);
  gate_and_up_.forward(x, scratch.gated(x.rows));
  where_->silu_mul(gate, scratch.up(x.rows), gate);
  return down_.forward(gate, residual, out, group);
}

} // namespace troupe::compute
