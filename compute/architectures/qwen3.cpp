// Qwen 3: no biases unless asked for, queries and keys normalised head by head, head_dim on its
// own. Yang et al. 2025, "Qwen3 Technical Report"; keys as in transformers' Qwen3Config.

#include "compute/architectures/family.hpp"

namespace troupe::compute {

const family qwen3{
  .name = "qwen3",
  .class_name = "Qwen3ForCausalLM",
  .describe =
    [](const json_object& config, decoder_spec& spec) {
      spec.head_norm = true;
      spec.shape.head_dim = config.size_or("head_dim", 128);
      spec.input_bias = config.flag_or("attention_bias", false);
      spec.output_bias = spec.input_bias;
      const bool windowed = config.flag_or("use_sliding_window", false);
      const auto window = windowed ? read_window(config) : 0;
      const auto first = config.count_or("max_window_layers", 28);
      spec.windows = read_windows(config, spec.shape.layers, window, first);
    },
};

} // namespace troupe::compute
