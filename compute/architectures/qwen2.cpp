// Qwen 2 and 2.5: biases on query, key and value; a window on the upper layers when asked for.
// Yang et al. 2024, "Qwen2 Technical Report"; keys as in transformers' Qwen2Config.

#include "compute/architectures/family.hpp"

namespace troupe::compute {

const family qwen2{
  .name = "qwen2",
  .class_name = "Qwen2ForCausalLM",
  .describe =
    [](const json_object& config, decoder_spec& spec) {
      spec.input_bias = true;
      const bool windowed = config.flag_or("use_sliding_window", false);
      const auto window = windowed ? read_window(config) : 0;
      const auto first = config.count_or("max_window_layers", 28);
      spec.windows = read_windows(config, spec.shape.layers, window, first);
    },
};

} // namespace troupe::compute
