#pragma once

#include "compute/architectures/random_model.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <string>

namespace troupe::cli {

/// The sizes of a name: "110M", "1.1B"; "custom" leaves `wanted` as it is. Error: invalid_argument.
result<void> apply_shape(const std::string& name, compute::random_model& wanted);

/// `troupe model random`: a folder with seeded random weights, for benchmarks and trials.
struct model_random_options {
  std::filesystem::path folder;
  compute::random_model wanted;
  std::string stored = "bf16";
  std::size_t threads = 0; ///< 0: the cores of the host.
  bool quiet = false;
};

int run_model_random_command(model_random_options options);

/// `troupe model inspect`: what a model folder holds, from its headers.
int run_model_inspect_command(const std::filesystem::path& folder);

/// "f32", "f16" or "bf16". Error: invalid_argument.
result<dtype> parse_dtype(const std::string& name);

/// As parse_dtype, for weights in memory: int8 and int4 as well.
result<dtype> parse_held_dtype(const std::string& name);

} // namespace troupe::cli
