// Llama 2, 3 and 3.1+, and all that borrow the shape: TinyLlama, SmolLM2.
// Touvron et al. 2023, "Llama 2"; keys as in transformers' LlamaConfig.

#include "compute/architectures/family.hpp"

namespace troupe::compute {

const family llama{
  .name = "llama",
  .class_name = "LlamaForCausalLM",
  .describe =
    [](const json_object& config, decoder_spec& spec) {
      spec.input_bias = config.flag_or("attention_bias", false);
      spec.output_bias = spec.input_bias;
      spec.mlp_bias = config.flag_or("mlp_bias", false);
    },
};

} // namespace troupe::compute
