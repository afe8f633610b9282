#pragma once
// A model folder, opened but not loaded: what it is, which tensors it has, and how they are cut.
// No weight byte is read here; compute/partition.hpp loads what one rank owns.

#include "compute/boundary.hpp"
#include "compute/weights/digest.hpp"
#include "config/dtype.hpp"
#include "config/result.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

class architecture;
class tensor_index;

/// The sizes of a decoder, normalised from the files of its family.
struct model_shape {
  std::string family; ///< For example "llama".
  std::size_t layers = 0;
  std::size_t hidden = 0;   ///< Width of the residual stream and of the boundary.
  std::size_t heads = 0;    ///< Query heads.
  std::size_t kv_heads = 0; ///< Key/value heads; divides heads.
  std::size_t head_dim = 0; ///< Need not be hidden / heads.
  std::size_t ffn = 0;      ///< Width of the gated feed-forward layer.
  std::size_t vocabulary = 0;
  std::size_t context = 0; ///< Positions that the model was made for (after rope scaling).
  bool tied_head = false;
  dtype stored = dtype::f32; ///< Of the weights, as most of them are stored.
};

/// What one rank owns of a model. Rank-local facts only; who is where is actors' business.
struct partition_record {
  range units;              ///< Global, non-empty, consecutive layers.
  bool owns_input = false;  ///< Embeds tokens; exactly the first stage.
  bool owns_output = false; ///< Final norm and head; exactly the last stage.
  std::size_t tensor_rank = 0;
  std::size_t tensor_size = 1;
};

/// One tensor, or the part of it, that a rank owns.
struct owned_tensor {
  std::string name; ///< As in the file, for example "model.layers.3.mlp.up_proj.weight".
  std::string file; ///< Relative to the model folder.
  range rows;       ///< Of the stored tensor; [0, 1) for vectors cut by columns.
  range columns;
  dtype stored = dtype::f32;
  std::size_t stored_bytes = 0; ///< Bytes read from disk for this part.
  std::size_t held_bytes = 0;   ///< Bytes in device memory.
};

/// Everything that a rank will hold, before anything is loaded.
struct shard_description {
  std::vector<owned_tensor> tensors = {};
  range heads;      ///< Query heads, global.
  range kv_heads;   ///< Key/value heads that its query heads need, global (replicated if shared).
  range ffn;        ///< Columns of the feed-forward layer, global.
  range vocabulary; ///< Rows of the embedding and the head, global.
  std::size_t stored_bytes = 0;
  std::size_t held_bytes = 0;
  std::size_t kv_page_bytes = 0; ///< Attention state of kv_page_tokens positions on this rank.
};

/// Arithmetic and traffic of parts of the model for one row, for balancing stages.
struct model_costs {
  double unit_flops = 0;   ///< One layer, without attention over the past.
  double unit_bytes = 0;   ///< Weight bytes of one layer as held; a step streams all of them.
  double input_flops = 0;  ///< Embedding.
  double input_bytes = 0;  ///< One row of the table: a lookup reads no more.
  double output_flops = 0; ///< Final norm and head.
  double output_bytes = 0; ///< Weight bytes of both as held.
};

/// Element types in the memory of a rank.
struct held_types {
  // Not explicit: whoever says nothing of the state has f32.
  held_types(dtype of_weights, dtype of_state = dtype::f32)
    : weights(of_weights), state(of_state) {}

  dtype weights;
  dtype state; ///< Keys and values: f32, f16 or bf16.
};

class model {
public:
  /// Opens a Hugging Face folder: config.json, safetensors (one file, or many with or without an
  /// index), generation_config.json. Reads headers only, and only those of files that exist: a node
  /// needs just the files that its ranks own (row B29); a file that the index names and that is not
  /// there is an error when a rank asks for a tensor of it. Errors name file and tensor or key.
  static result<std::shared_ptr<const model>> open(const std::filesystem::path& folder);

  /// A model of which there is but a config (the text of a config.json): enough to plan with, and
  /// nothing to load. Its weights count as stored in `stored`. `name` is what messages call it.
  static result<std::shared_ptr<const model>>
  sketch(std::string_view config, const std::string& name, dtype stored);

  virtual ~model() = default;

  virtual const std::filesystem::path& folder() const = 0;
  virtual const model_shape& shape() const = 0;
  virtual const boundary_schema& boundary() const = 0;

  /// Tokens that end a text: the union of what config and generation_config name (row B13).
  virtual const std::vector<std::uint32_t>& end_tokens() const = 0;

  /// The largest tensor-parallel size that works: no rank is without a query head, a
  /// feed-forward column or a vocabulary row; in practice the number of query heads.
  virtual std::size_t max_tensor_size() const = 0;

  virtual model_costs costs(dtype hold) const = 0;

  /// Resolves what a rank owns. Errors: invalid record (contract rules 4, 26), tensors missing,
  /// unexpected, twice, or of a wrong shape (rule 7).
  virtual result<shard_description> describe(const partition_record& record,
                                             held_types hold) const = 0;

  /// As describe, for planning the ranks of other nodes: a tensor in a file that is not here (row
  /// B29) is taken to be stored as most are, and its `file` is empty.
  virtual result<shard_description> estimate(const partition_record& record,
                                             held_types hold) const = 0;

  /// Digest of everything in config.json that results depend on and of the names and shapes of all
  /// tensors: equal on all ranks, whichever files they keep. Types and bytes are in fingerprints().
  virtual digest128 description_digest() const = 0;

  /// Per tensor whose file is here: a digest over its description and a few samples of its bytes,
  /// cheap enough for every start. Two folders of different weights differ (row A21).
  struct fingerprint {
    std::string tensor;
    digest128 digest;
  };

  virtual result<std::vector<fingerprint>> fingerprints() const = 0;

  /// What the family makes of the config; what the files hold. For partition::load.
  virtual const architecture& design() const = 0;
  virtual const tensor_index& index() const = 0;
};

} // namespace troupe::compute
