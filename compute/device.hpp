#pragma once
// The device: memory, packed weights, attention state, and about a dozen operations. compute/cpu
// and compute/cuda implement it under the same file names. Activations are f32 on every device.
//
// Every element of a result is computed in one fixed order that does not depend on how many rows
// are computed with it, on the number of threads or on the width of the vectors: the same input
// gives the same bits alone and in a batch.
//
// A device and everything it made belong to one rank and are used from its thread only. Shapes are
// given as [rows, columns]; sizes that do not fit each other are broken invariants (check), since
// the layers compute them; errors are those of memory and of the device.

#include "compute/batch.hpp"
#include "compute/buffer.hpp"
#include "config/dtype.hpp"
#include "config/topology.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::compute {

/// Sees the rows of a source go by while a device packs it, slice by slice: what is digested is
/// still near when it is packed, and what has been packed takes no memory any more. All of them may
/// be called by any thread of the device.
class row_watcher {
public:
  virtual ~row_watcher() = default;

  /// The rows will be read soon. Several threads at once, in any order.
  virtual void expect(const range& rows) = 0;

  /// Every row once, in ascending order; one thread at a time.
  virtual void pass(const range& rows) = 0;

  /// The rows will not be read again. Several threads at once, in any order.
  virtual void release(const range& rows) = 0;
};

/// Where the elements of a weight come from: a (part of a) tensor as stored, row-major.
struct weight_source {
  const std::byte* data = nullptr; ///< Element (0, 0); unaligned, usually in a mapped file.
  dtype stored = dtype::f32;
  std::size_t rows = 0;           ///< Output features.
  std::size_t columns = 0;        ///< Input features.
  std::size_t stride = 0;         ///< Elements from one row to the next in the source.
  std::shared_ptr<void> owner;    ///< Keeps the source alive, for weights that are used in place.
  std::string name = {};          ///< For errors; may be empty.
  row_watcher* watcher = nullptr; ///< Outlives the packing; null: nobody watches.
};

/// A weight matrix in the device's own layout: y = x * W^T for W of [rows, columns].
class matrix {
public:
  virtual ~matrix() = default;

  virtual std::size_t rows() const noexcept = 0;
  virtual std::size_t columns() const noexcept = 0;
  virtual dtype held() const noexcept = 0;
  virtual std::size_t bytes() const noexcept = 0; ///< Device memory that it takes.
};

/// What one layer keeps of each sequence.
struct kv_shape {
  std::size_t layers = 0;   ///< Owned layers, local ordinals 0 ... layers - 1.
  std::size_t kv_heads = 0; ///< Key/value heads of this rank.
  std::size_t head_dim = 0;
  std::size_t pages = 0;   ///< Pages of kv_page_tokens positions, each on every layer.
  dtype held = dtype::f32; ///< f32, f16 or bf16: what is stored is rounded to it.
};

/// The attention state of a rank, in pages, in the device's own layout.
class kv_cache {
public:
  virtual ~kv_cache() = default;

  virtual const kv_shape& shape() const noexcept = 0;
  virtual std::size_t bytes() const noexcept = 0;

  /// Bytes of one page on all layers: keys and values of kv_page_tokens positions.
  static std::size_t page_bytes(const kv_shape& shape) noexcept {
    return shape.layers * shape.kv_heads * shape.head_dim * kv_page_tokens * 2
           * size_of(shape.held);
  }

  /// Bytes of one page on so many layers.
  std::size_t page_bytes(std::size_t layers) const noexcept {
    return layers * page_bytes(shape()) / shape().layers;
  }

  /// Copies one page of some layers (local ordinals) out of the cache, or into it: page_bytes of
  /// these layers, one after the other, as the device keeps them. They are good for any cache of
  /// the same heads on a device of the same kind.
  virtual void read_page(page_id page, const range& layers, std::span<std::byte> out) const = 0;
  virtual void write_page(page_id page, const range& layers, std::span<const std::byte> from) = 0;
};

/// Rotary embedding, resolved by the architecture: frequencies per pair and a magnitude.
struct rope_table {
  std::vector<float> inverse_frequencies; ///< rotary_dim / 2 entries, f32 as in the reference.
  float magnitude = 1.0f;                 ///< Factor on cos and sin (yarn's attention factor).
};

/// One attention call: rows of queries against the pages of their sequences.
struct attention_call {
  std::size_t layer = 0;    ///< Local ordinal of the layer in the cache.
  std::size_t heads = 0;    ///< Query heads of this rank.
  std::size_t kv_heads = 0; ///< Key/value heads of this rank.
  std::size_t head_dim = 0;
  float scale = 0.0f;     ///< On the scores, usually 1 / sqrt(head_dim).
  std::size_t window = 0; ///< Sliding window in positions (own one included); 0 = all.
  /// Query head h attends to key/value head kv_head_of[h] (local indices). Uneven splits make this
  /// more than a division.
  std::span<const std::uint32_t> kv_head_of;
};

class device {
public:
  virtual ~device() = default;

  /// One line for people: "cpu avx2, 4 threads".
  virtual std::string describe() const = 0;

  // -- memory ------------------------------------------------------------------------------------

  virtual result<buffer> allocate(std::size_t bytes) = 0;

  /// Packs a weight for matmul. Several sources of the same columns become one weight with the rows
  /// of all of them, one after the other: one product for what has the same input. The sources are
  /// not needed afterwards. Errors name the source; watchers need not have seen all rows then.
  virtual result<std::unique_ptr<matrix>> pack(std::span<const weight_source> sources,
                                               dtype hold) = 0;

  result<std::unique_ptr<matrix>> pack(const weight_source& source, dtype hold) {
    return pack(std::span(&source, 1), hold);
  }

  /// A table for lookups only (an embedding that is not tied to a head); may stay in place.
  virtual result<std::unique_ptr<matrix>> table(const weight_source& source) = 0;

  virtual result<std::unique_ptr<kv_cache>> make_kv_cache(const kv_shape& shape) = 0;

  // -- operations --------------------------------------------------------------------------------

  /// out[r] = row ids[r] of `weights` as f32; ids that are not in [first, first + weights.rows())
  /// give a row of 0 (vocabulary-parallel lookup). weights packed or table. out: [ids, columns].
  virtual void
  embed(const matrix& weights, std::span<const token_id> ids, token_id first, tensor out) = 0;

  /// out = x * W^T (+ bias) (+ added). x: [m, W.columns], out and added: [m, W.rows]; added has no
  /// data where nothing is added, and may be out. bias: W.rows values or empty.
  virtual void matmul(
    const matrix& weights, tensor x, std::span<const float> bias, tensor out, tensor added) = 0;

  /// out[r] = x[r] / sqrt(mean(x[r]^2) + eps) * weight. x, out: [m, n], may be the same.
  virtual void rms_norm(tensor x, std::span<const float> weight, float eps, tensor out) = 0;

  /// Normalises each head of x: [m, heads * head_dim] by itself with one weight of head_dim.
  virtual void
  head_norm(tensor x, std::size_t head_dim, std::span<const float> weight, float eps) = 0;

  /// Rotates in place each head of x: [rows, heads * head_dim] by its row's position; pairs are
  /// (i, i + rotary_dim / 2), the layout of Hugging Face models.
  virtual void rope(tensor x, std::size_t head_dim, const rope_table& table, const batch& rows) = 0;

  /// Stores keys and values of the step's rows in the pages of their sequences.
  /// keys, values: [rows, kv_heads * head_dim].
  virtual void
  store_kv(kv_cache& cache, std::size_t layer, const batch& rows, tensor keys, tensor values) = 0;

  /// Causal attention of each row over the positions 0 ... its own. queries, out:
  /// [rows, heads * head_dim]. Keys and values of the step's rows are stored before.
  virtual void attention(const kv_cache& cache,
                         const attention_call& call,
                         const batch& rows,
                         tensor queries,
                         tensor out) = 0;

  /// out = silu(gate) * up, all [m, n]; out may be gate.
  virtual void silu_mul(tensor gate, tensor up, tensor out) = 0;

  /// out += x, both [m, n].
  virtual void add(tensor x, tensor out) = 0;

  /// finite[r] = whether every element of row r is a finite number.
  virtual void find_finite(tensor x, std::span<bool> finite) = 0;

  /// Returns when all work given so far is done (asynchronous devices).
  virtual void synchronise() = 0;
};

/// What a rank wants of its device.
struct device_options {
  std::size_t threads = 1;
  std::vector<unsigned> cores; ///< Cores to pin the threads to, in order; empty = not pinned.
  /// Where the threads show that they get on, within an operation too: a product for many rows may
  /// take seconds on a slow host. Outlives the device; null: nowhere.
  std::atomic<std::uint64_t>* pulse = nullptr;
};

/// The best device that this build and this machine have for `kind`: "cpu" or "cuda".
result<std::unique_ptr<device>> make_device(const std::string& kind, const device_options& options);

} // namespace troupe::compute
