#pragma once
// Names of a decoder's parameters in Hugging Face files.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::compute::decoder_names {

inline constexpr const char* embedding = "model.embed_tokens.weight";
inline constexpr const char* final_norm_path = "model.norm";
inline constexpr const char* final_norm = "model.norm.weight";
inline constexpr const char* head = "lm_head.weight";

/// "model.layers.7"
inline std::string layer(std::size_t index) {
  return "model.layers." + std::to_string(index);
}

/// "model.layers.7.mlp.up_proj.weight"
inline std::string in_layer(std::size_t index, std::string_view part) {
  return layer(index) + "." + std::string(part);
}

} // namespace troupe::compute::decoder_names
