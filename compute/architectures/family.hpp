#pragma once
// A family: what is different about its config. One file each; the list is in family.cpp, and
// docs/adding-a-family.md shows how to add one.

#include "compute/architectures/decoder_spec.hpp"
#include "compute/weights/json_object.hpp"
#include "config/result.hpp"

#include <span>
#include <string_view>

namespace troupe::compute {

struct family {
  std::string_view name;       ///< "model_type" in config.json, for example "llama".
  std::string_view class_name; ///< "architectures" in config.json, for example "LlamaForCausalLM".
  /// Sets in `spec` what the family adds to what all share (which is filled in already). What is
  /// wrong is remembered by `config`.
  void (*describe)(const json_object& config, decoder_spec& spec);
};

extern const family llama;
extern const family mistral;
extern const family qwen2;
extern const family qwen3;

/// All families, in the order in which messages list them.
std::span<const family* const> families();

/// Reads config.json: finds the family, reads what all families share, and lets it add the rest.
/// Errors name the key, the value found and the values that work; a wish that cannot be fulfilled
/// (quantised weights, another activation, an unknown rope type) is an error, never ignored.
result<decoder_spec> read_decoder(const json_object& config);

/// "sliding_window": 4096 when the key is absent, as in transformers; 0, no window, when it is
/// null.
std::size_t read_window(const json_object& config);

/// The window of each layer, for families where some have one: as "layer_types" says (the newer
/// way), else `window` from layer `first_windowed` on. 0 = no window.
std::vector<std::size_t> read_windows(const json_object& config,
                                      std::size_t layers,
                                      std::size_t window,
                                      std::size_t first_windowed);

} // namespace troupe::compute
