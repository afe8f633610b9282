#include "compute/architectures/family.hpp"

#include "compute/architectures/rope.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace troupe::compute {
namespace {

std::string list_names(std::string_view family::*which) {
  std::string names;
  for (const auto* known : families())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known->*which);
  return names;
}

/// The family that model_type and architectures agree on; nothing after a remembered failure.
const family* find_family(const json_object& config) {
  const auto type = config.text_or("model_type", "");
  const auto classes = config.texts("architectures");
  const family* found = nullptr;
  for (const auto* known : families())
    if (known->name == type
        || (type.empty() && classes.size() == 1 && known->class_name == classes.front()))
      found = known;
  if (found == nullptr)
    config.fail("model_type",
                fmt::format("is '{}'; the known families are {}", type, list_names(&family::name)),
                errc::unsupported);
  else if (!classes.empty()
           && std::find(classes.begin(), classes.end(), found->class_name) == classes.end()) {
    config.fail("architectures",
                fmt::format("is '{}'; of family {} only {} can be run",
                            classes.front(),
                            found->name,
                            found->class_name),
                errc::unsupported);
    found = nullptr;
  }
  return found;
}

void refuse_unsupported(const json_object& config) {
  if (config.has("quantization_config"))
    config.fail("quantization_config",
                "is set: quantised weights cannot be read; use the f32, f16 or bf16 original",
                errc::unsupported);
  const auto activation = config.text_or("hidden_act", "silu");
  if (activation != "silu")
    config.fail("hidden_act",
                fmt::format("is '{}'; only 'silu' can be computed", activation),
                errc::unsupported);
}

/// Multimodal exporters leave the flag in the text section only.
bool read_tied_head(const json_object& config) {
  const auto nested = config.section("text_config");
  const bool here = config.flag_or("tie_word_embeddings", false);
  const bool inside = nested.flag_or("tie_word_embeddings", here);
  if (config.has("tie_word_embeddings") && inside != here)
    config.fail("tie_word_embeddings",
                "differs from 'text_config.tie_word_embeddings'; they have to agree");
  return inside;
}

model_shape read_shape(const json_object& config) {
  model_shape shape;
  shape.layers = config.size("num_hidden_layers");
  shape.hidden = config.size("hidden_size");
  shape.heads = config.size("num_attention_heads");
  shape.kv_heads = config.size_or("num_key_value_heads", shape.heads);
  shape.ffn = config.size("intermediate_size");
  shape.vocabulary = config.size("vocab_size");
  shape.tied_head = read_tied_head(config);
  shape.head_dim = config.size_or("head_dim", std::max<std::size_t>(shape.hidden / shape.heads, 1));
  return shape;
}

/// Sizes beyond these are damage or an attack, and products of them must not overflow.
void check_shape(const json_object& config, const model_shape& shape) {
  constexpr std::size_t widest = std::size_t{1} << 24;
  if (shape.layers > 65536)
    config.fail("num_hidden_layers", "is more than 65536");
  for (const auto& [key, size] : {std::pair("hidden_size", shape.hidden),
                                  std::pair("intermediate_size", shape.ffn),
                                  std::pair("vocab_size", shape.vocabulary),
                                  std::pair("num_attention_heads", shape.heads),
                                  std::pair("head_dim", shape.head_dim)})
    if (size > widest)
      config.fail(key, fmt::format("is {}; at most {} is possible", size, widest));
  if (!config.has("head_dim") && shape.hidden % shape.heads != 0)
    config.fail("hidden_size",
                fmt::format("is {}, which {} heads do not divide, and 'head_dim' is not given",
                            shape.hidden,
                            shape.heads));
  if (shape.heads % shape.kv_heads != 0)
    config.fail(
      "num_key_value_heads",
      fmt::format("is {}, which does not divide the {} query heads", shape.kv_heads, shape.heads));
  if (shape.head_dim % 2 != 0)
    config.fail("head_dim",
                fmt::format("is {}; rotary embedding needs an even number", shape.head_dim));
}

} // namespace

std::span<const family* const> families() {
  static constexpr std::array<const family*, 4> all{&llama, &mistral, &qwen2, &qwen3};
  return all;
}

std::size_t read_window(const json_object& config) {
  return config.mentions("sliding_window") ? config.size_or("sliding_window", 0) : 4096;
}

std::vector<std::size_t> read_windows(const json_object& config,
                                      std::size_t layers,
                                      std::size_t window,
                                      std::size_t first_windowed) {
  const auto types = config.texts("layer_types");
  std::vector<std::size_t> windows;
  for (std::size_t layer = 0; layer < std::min<std::size_t>(layers, 65536); ++layer) {
    bool windowed = layer >= first_windowed;
    if (layer < types.size()) {
      windowed = types[layer] == "sliding_attention";
      if (!windowed && types[layer] != "full_attention")
        config.fail("layer_types",
                    fmt::format("names '{}' for layer {}; full_attention and sliding_attention can "
                                "be computed",
                                types[layer],
                                layer),
                    errc::unsupported);
      if (windowed && window == 0)
        config.fail(
          "layer_types",
          fmt::format("gives layer {} a window, but 'sliding_window' sets no size", layer));
    }
    windows.push_back(windowed ? window : 0);
  }
  if (!types.empty() && types.size() != layers)
    config.fail("layer_types", fmt::format("has {} entries for {} layers", types.size(), layers));
  return windows;
}

result<decoder_spec> read_decoder(const json_object& config) {
  decoder_spec spec;
  const auto* found = find_family(config);
  if (found == nullptr)
    return *config.failure();
  refuse_unsupported(config);
  spec.shape = read_shape(config);
  spec.shape.family = found->name;
  spec.norm_eps = static_cast<float>(config.number_or("rms_norm_eps", 1e-6));
  if (!(spec.norm_eps >= 0 && spec.norm_eps < 1))
    config.fail("rms_norm_eps", fmt::format("is {}; 0 to 1 is possible", spec.norm_eps));
  found->describe(config, spec);
  check_shape(config, spec.shape);
  if (config.failure())
    return *config.failure();
  spec.windows.resize(spec.shape.layers, 0);
  auto rope = read_rope(config, spec.shape.head_dim);
  spec.rope = std::move(rope.table);
  spec.shape.context = rope.context;
  if (config.failure())
    return *config.failure();
  return spec;
}

} // namespace troupe::compute
