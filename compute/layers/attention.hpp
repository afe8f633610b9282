#pragma once
// Grouped-query attention with the heads dealt out: query, key and value projections are
// column-parallel at head granularity, the output projection is row-parallel. Query heads follow
// the one split rule; a rank holds the key/value heads that its query heads attend to, so those on
// a border are held twice, and with fewer key/value heads than ranks all are replicated. Ainslie et
// al. 2023, "GQA".

#include "compute/architectures/decoder_spec.hpp"
#include "compute/batch.hpp"
#include "compute/collective.hpp"
#include "compute/layers/column_parallel.hpp"
#include "compute/layers/norm.hpp"
#include "compute/layers/row_parallel.hpp"
#include "compute/layers/workspace.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::compute {

/// Key/value head of each of `heads`, counted from kv_heads.begin; `share` query heads use one.
std::vector<std::uint32_t>
map_kv_heads(const range& heads, const range& kv_heads, std::size_t share);

class attention {
public:
  /// Loads the projections under `path`, for example "model.layers.3.self_attn". `layer` is the
  /// global index, for its window. Spec and device outlive the layer.
  static result<attention> load(shard_loader& loader,
                                device& where,
                                const decoder_spec& spec,
                                const std::string& path,
                                std::size_t layer,
                                const range& heads,
                                const range& kv_heads);

  /// out = residual + attention(x) for the rows of the step; stores their keys and values in layer
  /// `ordinal` of the cache before. x: [rows, hidden] normalised. One all-reduce.
  result<void> forward(tensor x,
                       tensor residual,
                       tensor out,
                       std::size_t ordinal,
                       const batch& rows,
                       kv_cache& cache,
                       const workspace& scratch,
                       collective& group) const;

private:
  attention(device& where, const decoder_spec& spec, column_parallel inputs, row_parallel output);

  device* where_;
  const decoder_spec* spec_;
  column_parallel inputs_; // query, key, value
  row_parallel output_;
  std::optional<norm> query_norm_;
  std::optional<norm> key_norm_;
  std::vector<std::uint32_t> kv_head_of_;
  std::size_t kv_heads_ = 0;
  std::size_t window_ = 0;
};

} // namespace troupe::compute
