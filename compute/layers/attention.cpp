#include "compute/layers/attention.hpp"

#include <cmath>

namespace troupe::compute {

std::vector<std::uint32_t>
map_kv_heads(const range& heads, const range& kv_heads, std::size_t share) {
  std::vector<std::uint32_t> map;
  for (auto head = heads.begin; head < heads.end; ++head)
    map.push_back(static_cast<std::uint32_t>(head / share - kv_heads.begin));
  return map;
}

attention::attention(device& where,
                     const decoder_spec& spec,
                     column_parallel inputs,
                     row_parallel output)
  : where_(&where), spec_(&spec), inputs_(std::move(inputs)), output_(std::move(output)) {}

result<attention> attention::load(shard_loader& loader,
                                  device& where,
                                  const decoder_spec& spec,
                                  const std::string& path,
                                  std::size_t layer,
                                  const range& heads,
                                  const range& kv_heads) {
  const auto queries = heads.size() * spec.shape.head_dim;
  const auto keys = kv_heads.size() * spec.shape.head_dim;
  auto inputs = column_parallel::load(
    loader,
    where,
    {{path + ".q_proj", queries}, {path + ".k_proj", keys}, {path + ".v_proj", keys}},
    spec.input_bias);
  if (!inputs)
    return inputs.error();
  auto output = row_parallel::load(loader, where, path + ".o_proj", queries, spec.output_bias);
  if (!output)
    return output.error();
  attention made(where, spec, *std::move(inputs), *std::move(output));
  if (spec.head_norm) {
    auto query_norm = norm::load(loader, where, path + ".q_norm", spec.norm_eps);
    if (!query_norm)
      return query_norm.error();
    auto key_norm = norm::load(loader, where, path + ".k_norm", spec.norm_eps);
    if (!key_norm)
      return key_norm.error();
    made.query_norm_ = *std::move(query_norm);
    made.key_norm_ = *std::move(key_norm);
  }
  made.kv_head_of_ = map_kv_heads(heads, kv_heads, spec.shape.heads / spec.shape.kv_heads);
  made.kv_heads_ = kv_heads.size();
  made.window_ = spec.windows[layer];
  return made;
}

result<void> attention::forward(tensor x,
                                tensor residual,
                                tensor out,
                                std::size_t ordinal,
                                const batch& rows,
                                kv_cache& cache,
                                const workspace& scratch,
                                collective& group) const {
  const auto head_dim = spec_->shape.head_dim;
  const auto queries = scratch.queries(x.rows);
  const auto keys = scratch.keys(x.rows);
  const auto values = scratch.values(x.rows);
  const auto attended = scratch.attended(x.rows);
  inputs_.forward(x, scratch.projected(x.rows));
  if (query_norm_) {
    query_norm_->forward_heads(queries);
    key_norm_->forward_heads(keys);
  }
  where_->rope(queries, head_dim, spec_->rope, rows);
  where_->rope(keys, head_dim, spec_->rope, rows);
  where_->store_kv(cache, ordinal, rows, keys, values);
  const attention_call call{.layer = ordinal,
                            .heads = kv_head_of_.size(),
                            .kv_heads = kv_heads_,
                            .head_dim = head_dim,
                            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                            .window = window_,
                            .kv_head_of = kv_head_of_};
  where_->attention(cache, call, rows, queries, attended);
  return output_.forward(attended, residual, out, group);
}

} // namespace troupe::compute
