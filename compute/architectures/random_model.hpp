#pragma once
// Writes model folders with seeded random weights: for benchmarks of a shape, and for tests. The
// same request gives the same bytes on every machine.

#include "config/dtype.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace troupe::compute {

struct random_model {
  std::string family = "llama"; ///< A name of families().
  std::size_t layers = 2;
  std::size_t hidden = 64;
  std::size_t heads = 4;
  std::size_t kv_heads = 2;
  std::size_t head_dim = 0; ///< 0: hidden / heads.
  std::size_t ffn = 128;
  std::size_t vocabulary = 256;
  std::size_t context = 2048;
  std::size_t window = 0; ///< Sliding window of families that have one; 0 = none.
  bool tied_head = false;
  bool biases = false; ///< "attention_bias" and "mlp_bias" of families that have the keys.
  dtype stored = dtype::f32;
  std::size_t files = 1; ///< More than 1: numbered parts and an index.
  std::uint64_t seed = 1;
  float scale = 1; ///< Factor on matrices; 1 keeps activations near 1 in any depth.
};

/// The sizes of a well-known model: 110M and 1.1B (vocabulary 32 000), or Llama 3's 8B, 70B and
/// 405B. False, and nothing changed, where the name is not one of these.
bool apply_named_shape(std::string_view name, random_model& wanted);

/// The config.json that write_random_model would write. Errors: a family that is not known.
result<std::string> config_text(const random_model& wanted);

/// Bytes written so far, and of how many.
using write_progress = std::function<void(std::size_t done_bytes, std::size_t total_bytes)>;

/// Writes config.json, generation_config.json and the weights into `folder`, which is made if it is
/// not there; `threads` of them draw numbers. Matrices are normal with deviation
/// scale / sqrt(inputs), embeddings 1, norms near 1, biases small. Memory stays below 16 MiB a
/// thread. Errors: a shape that the family refuses, io_error.
result<void> write_random_model(const std::filesystem::path& folder,
                                const random_model& wanted,
                                std::size_t threads,
                                const write_progress& progress);

} // namespace troupe::compute
