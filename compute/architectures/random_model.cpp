#include "compute/architectures/random_model.hpp"

#include "compute/architectures/decoder.hpp"
#include "compute/architectures/family.hpp"
#include "compute/architectures/random_weights.hpp"
#include "compute/weights/write_safetensors.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace troupe::compute {
namespace {

using json = nlohmann::ordered_json;

const family* find_family(std::string_view name) {
  for (const auto* known : families())
    if (known->name == name)
      return known;
  return nullptr;
}

json make_config(const random_model& wanted, const family& of) {
  json config = {
    {"architectures", {of.class_name}},
    {"model_type", of.name},
    {"hidden_size", wanted.hidden},
    {"intermediate_size", wanted.ffn},
    {"num_hidden_layers", wanted.layers},
    {"num_attention_heads", wanted.heads},
    {"num_key_value_heads", wanted.kv_heads},
    {"head_dim",
     wanted.head_dim != 0 ? wanted.head_dim
                          : wanted.hidden / std::max<std::size_t>(wanted.heads, 1)},
    {"vocab_size", wanted.vocabulary},
    {"max_position_embeddings", wanted.context},
    {"rms_norm_eps", 1e-5},
    {"rope_theta", 10000.0},
    {"hidden_act", "silu"},
    {"tie_word_embeddings", wanted.tied_head},
    {"attention_bias", wanted.biases},
    {"mlp_bias", wanted.biases},
    {"sliding_window", wanted.window != 0 ? json(wanted.window) : json()},
    {"use_sliding_window", wanted.window != 0},
    {"max_window_layers", 0},
    {"bos_token_id", 1},
    {"eos_token_id", 2},
    {"torch_dtype",
     wanted.stored == dtype::f32   ? "float32"
     : wanted.stored == dtype::f16 ? "float16"
                                   : "bfloat16"},
  };
  return config;
}

result<void> write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text << '\n';
  out.close();
  if (!out)
    return error{errc::io_error, fmt::format("cannot write {}", file.string())};
  return {};
}

/// Consecutive parameters of about the same number of bytes a file.
std::vector<std::vector<const parameter*>> deal_to_files(const std::vector<parameter>& parameters,
                                                         std::size_t files) {
  std::size_t total = 0;
  for (const auto& which : parameters)
    total += which.rows() * which.columns();
  std::vector<std::vector<const parameter*>> dealt(files);
  std::size_t before = 0;
  for (const auto& which : parameters) {
    dealt[std::min(files - 1, before * files / std::max<std::size_t>(total, 1))].push_back(&which);
    before += which.rows() * which.columns();
  }
  std::erase_if(dealt, [](const auto& file) { return file.empty(); });
  return dealt;
}

std::string file_name(std::size_t index, std::size_t count) {
  return count == 1 ? "model.safetensors"
                    : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

result<void> write_index(const std::filesystem::path& folder,
                         const std::vector<std::vector<const parameter*>>& files,
                         dtype stored) {
  json map = json::object();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const auto* which : files[i]) {
      map[which->name] = file_name(i, files.size());
      bytes += which->rows() * which->columns() * size_of(stored);
    }
  const json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return write_text(folder / "model.safetensors.index.json", index.dump(2));
}

/// The architecture that a reader will make of the config; it refuses what it would refuse then.
result<std::unique_ptr<const architecture>> make_design(const std::string& config) {
  auto read = json_object::parse(config, "config.json");
  if (!read)
    return read.error();
  auto spec = read_decoder(*read);
  if (!spec)
    return spec.error();
  return make_decoder(*std::move(spec));
}

} // namespace

bool apply_named_shape(std::string_view name, random_model& wanted) {
  struct sizes {
    std::string_view name;
    std::size_t layers, hidden, heads, kv_heads, ffn, vocabulary;
  };

  constexpr sizes known[] = {{"110M", 12, 768, 12, 4, 2048, 32'000},
                             {"1.1B", 22, 2048, 32, 4, 5632, 32'000},
                             {"8B", 32, 4096, 32, 8, 14'336, 128'256},
                             {"70B", 80, 8192, 64, 8, 28'672, 128'256},
                             {"405B", 126, 16'384, 128, 8, 53'248, 128'256}};
  const auto* found = std::find_if(
    std::begin(known), std::end(known), [&](const sizes& s) { return s.name == name; });
  if (found == std::end(known))
    return false;
  wanted.layers = found->layers;
  wanted.hidden = found->hidden;
  wanted.heads = found->heads;
  wanted.kv_heads = found->kv_heads;
  wanted.head_dim = 0;
  wanted.ffn = found->ffn;
  wanted.vocabulary = found->vocabulary;
  return true;
}

result<std::string> config_text(const random_model& wanted) {
  const auto* of = find_family(wanted.family);
  if (of == nullptr)
    return error{
      errc::invalid_argument,
      fmt::format("family '{}' is not known; llama, mistral, qwen2 and qwen3 are", wanted.family)};
  return make_config(wanted, *of).dump(2);
}

result<void> write_random_model(const std::filesystem::path& folder,
                                const random_model& wanted,
                                std::size_t threads,
                                const write_progress& progress) {
  if (wanted.files == 0)
    return error{errc::invalid_argument,
                 "a model is written into 1 file or more; 0 were asked for"};
  const auto config = config_text(wanted);
  if (!config)
    return config.error();
  auto design = make_design(*config);
  if (!design)
    return design.error();
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    return error{errc::io_error,
                 fmt::format("cannot make {}: {}", folder.string(), code.message())};
  const auto& parameters = (*design)->parameters();
  const auto files = deal_to_files(parameters, wanted.files);
  random_weights weights(wanted, parameters, threads, progress);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (auto done = weights.write(folder / file_name(i, files.size()), files[i]); !done)
      return done;
  if (files.size() > 1)
    if (auto done = write_index(folder, files, wanted.stored); !done)
      return done;
  if (auto done = write_text(folder / "generation_config.json", R"({"eos_token_id": 2})"); !done)
    return done;
  return write_text(folder / "config.json", *config);
}

} // namespace troupe::compute
