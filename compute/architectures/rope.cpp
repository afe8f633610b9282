#include "compute/architectures/rope.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace troupe::compute {
namespace {

/// Keys that each type reads besides those that all have.
struct rope_type {
  std::string_view name;
  std::vector<std::string_view> keys;
};

const std::vector<rope_type>& rope_types() {
  static const std::vector<rope_type> types{
    {"default", {}},
    {"linear", {"factor"}},
    {"dynamic", {"factor", "original_max_position_embeddings"}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"yarn",
     {"factor",
      "original_max_position_embeddings",
      "attention_factor",
      "beta_fast",
      "beta_slow",
      "mscale",
      "mscale_all_dim",
      "truncate"}},
  };
  return types;
}

/// What a reader of one rope block knows.
struct rope_request {
  const json_object& block;
  std::size_t dim;
  double theta;
  std::size_t max_positions;
};

/// theta^(-2i/dim) in f32, step by step as the reference computes it.
std::vector<float> plain_frequencies(const rope_request& request) {
  std::vector<float> frequencies(request.dim / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(request.dim);
    frequencies[i] = 1.0f / static_cast<float>(std::pow(request.theta, exponent));
  }
  return frequencies;
}

/// Bounds within which no context overflows; far beyond what any model has.
constexpr double largest_factor = 65536;
constexpr std::size_t most_positions = std::size_t{1} << 31;

double read_factor(const rope_request& request) {
  const double factor = request.block.number("factor");
  if (factor < 1 || factor > largest_factor)
    request.block.fail("factor", fmt::format("is {}; 1 to {} is possible", factor, largest_factor));
  return std::clamp(factor, 1.0, largest_factor);
}

std::size_t read_positions(const json_object& where, const char* key, std::size_t fallback) {
  const auto positions = where.size_or(key, fallback);
  if (positions > most_positions)
    where.fail(key, fmt::format("is {}; at most {} is possible", positions, most_positions));
  return std::min(positions, most_positions);
}

resolved_rope linear(const rope_request& request) {
  resolved_rope rope{{plain_frequencies(request)}, 0};
  const auto factor = read_factor(request);
  for (auto& frequency : rope.table.inverse_frequencies)
    frequency /= static_cast<float>(factor);
  rope.context = static_cast<std::size_t>(static_cast<double>(request.max_positions) * factor);
  return rope;
}

resolved_rope llama3(const rope_request& request) {
  resolved_rope rope{{plain_frequencies(request)}, request.max_positions};
  const auto factor = static_cast<float>(read_factor(request));
  const auto low = static_cast<float>(request.block.number("low_freq_factor"));
  const auto high = static_cast<float>(request.block.number("high_freq_factor"));
  const auto original = static_cast<float>(
    read_positions(request.block, "original_max_position_embeddings", request.max_positions));
  if (!(low > 0 && high > low))
    request.block.fail(
      "high_freq_factor",
      fmt::format("is {} and low_freq_factor {}; 0 < low < high is needed", high, low));
  for (auto& frequency : rope.table.inverse_frequencies) {
    const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
    if (wavelength < original / high)
      continue;
    if (wavelength > original / low) {
      frequency /= factor;
      continue;
    }
    const float smooth = (original / wavelength - low) / (high - low);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
  return rope;
}

/// The magnitude of cos and sin: Peng et al. 2023, "YaRN", section 3.4.
double yarn_magnitude(const json_object& block, double factor) {
  const auto magnitude = [&](double scale) {
    return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
  };
  if (block.has("attention_factor"))
    return block.number("attention_factor");
  const auto scale = block.number_or("mscale", 0);
  const auto scale_all = block.number_or("mscale_all_dim", 0);
  if (scale != 0 && scale_all != 0)
    return magnitude(scale) / magnitude(scale_all);
  return magnitude(1);
}

resolved_rope yarn(const rope_request& request) {
  const auto& block = request.block;
  const auto original =
    read_positions(block, "original_max_position_embeddings", request.max_positions);
  const double factor = block.has("factor")
                          ? read_factor(request)
                          : static_cast<double>(request.max_positions) / double(original);
  const auto dim = static_cast<double>(request.dim);
  // The dimension whose wavelength makes that many turns within the original context.
  const auto dimension_of = [&](double turns) {
    return dim * std::log(static_cast<double>(original) / (turns * 2 * std::numbers::pi))
           / (2 * std::log(request.theta));
  };
  double low = dimension_of(block.number_or("beta_fast", 32));
  double high = dimension_of(block.number_or("beta_slow", 1));
  if (block.flag_or("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high)
    high += 0.001;
  resolved_rope rope{{plain_frequencies(request)}, 0};
  for (std::size_t i = 0; i < rope.table.inverse_frequencies.size(); ++i) {
    auto& frequency = rope.table.inverse_frequencies[i];
    const auto ramp =
      std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low),
                 0.0f,
                 1.0f);
    const float kept = 1 - ramp;
    frequency = frequency / static_cast<float>(factor) * (1 - kept) + frequency * kept;
  }
  rope.table.magnitude = static_cast<float>(yarn_magnitude(block, factor));
  const auto stretched = static_cast<std::size_t>(static_cast<double>(original) * factor);
  rope.context = std::max(request.max_positions, stretched);
  return rope;
}

/// The type of a block; "default" where it has none.
std::string read_type(const json_object& block) {
  const auto old_name = block.text_or("type", "");
  auto name = block.text_or("rope_type", old_name.empty() ? "default" : old_name);
  if (!old_name.empty() && old_name != name)
    block.fail("rope_type", fmt::format("is '{}', but 'type' is '{}'", name, old_name));
  return name;
}

resolved_rope read_block(const json_object& block, const rope_request& request) {
  const auto name = read_type(block);
  std::vector<std::string_view> names;
  const rope_type* type = nullptr;
  for (const auto& known : rope_types()) {
    names.push_back(known.name);
    if (known.name == name)
      type = &known;
  }
  if (type == nullptr) {
    block.fail("rope_type",
               fmt::format("is '{}'; {} can be computed", name, fmt::join(names, ", ")),
               errc::unsupported);
    return {};
  }
  constexpr std::array<std::string_view, 4> shared{
    "type", "rope_type", "rope_theta", "partial_rotary_factor"};
  for (const auto& key : block.keys())
    if (std::find(shared.begin(), shared.end(), key) == shared.end()
        && std::find(type->keys.begin(), type->keys.end(), key) == type->keys.end())
      block.fail(key,
                 fmt::format("is not understood with rope type '{}', which reads: {}",
                             name,
                             fmt::join(type->keys, ", ")),
                 errc::unsupported);
  if (name == "linear")
    return linear(request);
  if (name == "llama3")
    return llama3(request);
  if (name == "yarn")
    return yarn(request);
  return {{plain_frequencies(request)}, request.max_positions};
}

void refuse_unknown_keys(const json_object& config) {
  for (const auto& key : config.keys())
    if (key.starts_with("rope_") && key != "rope_theta" && key != "rope_scaling"
        && key != "rope_parameters")
      config.fail(key,
                  "is not understood; rope_theta, rope_scaling and rope_parameters are",
                  errc::unsupported);
  for (const auto& holder :
       {config, config.section("rope_scaling"), config.section("rope_parameters")})
    if (holder.number_or("partial_rotary_factor", 1) != 1)
      holder.fail(
        "partial_rotary_factor", "is not 1; these families rotate whole heads", errc::unsupported);
}

/// One base for all spellings of it.
double read_theta(const json_object& config) {
  const double fallback = 10000; // what transformers takes where old configs give none
  double theta = config.number_or("rope_theta", fallback);
  bool given = config.has("rope_theta");
  for (const auto* section : {"rope_scaling", "rope_parameters"}) {
    const auto block = config.section(section);
    if (!block.has("rope_theta"))
      continue;
    const double other = block.number("rope_theta");
    if (given && other != theta)
      block.fail("rope_theta", fmt::format("is {}, but another place says {}", other, theta));
    theta = other;
    given = true;
  }
  if (theta <= 1)
    config.fail("rope_theta", fmt::format("is {}; more than 1 is needed", theta));
  return theta;
}

} // namespace

resolved_rope read_rope(const json_object& config, std::size_t head_dim) {
  refuse_unknown_keys(config);
  const auto theta = read_theta(config);
  if (!config.has("max_position_embeddings"))
    config.fail("max_position_embeddings", "is missing; a positive integer is needed");
  const auto positions = read_positions(config, "max_position_embeddings", 1);
  if (config.failure())
    return {};
  const auto read = [&](const char* section) {
    const auto block = config.section(section);
    return read_block(block, {block, head_dim, theta, positions});
  };
  auto rope = read(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (config.has("rope_parameters") && config.has("rope_scaling")) {
    const auto other = read("rope_scaling");
    if (other.table.inverse_frequencies != rope.table.inverse_frequencies
        || other.table.magnitude != rope.table.magnitude || other.context != rope.context)
      config.fail("rope_scaling", "means something else than 'rope_parameters'; keep one of them");
  }
  return rope;
}

} // namespace troupe::compute
