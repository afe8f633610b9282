// Mistral 7B and Nemo: Llama's layers with a sliding window on all of them (or none, when the key
// is null). Jiang et al. 2023, "Mistral 7B"; keys as in transformers' MistralConfig.

#include "compute/architectures/family.hpp"

namespace troupe::compute {

const family mistral{
  .name = "mistral",
  .class_name = "MistralForCausalLM",
  .describe =
    [](const json_object& config, decoder_spec& spec) {
      spec.windows = read_windows(config, spec.shape.layers, read_window(config), 0);
    },
};

} // namespace troupe::compute
