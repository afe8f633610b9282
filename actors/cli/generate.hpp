#pragma once

#include "actors/cli/command.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// `troupe generate`. What is not given comes from [generate] of the cluster file.
struct generate_options {
  cluster_options cluster;
  std::optional<std::string> prompt;
  std::filesystem::path prompts_file; ///< "-": standard input.
  std::optional<std::uint32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<std::uint32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  bool ignore_end = false;
  bool json = false;
  bool digests = false;
  bool echo = false; ///< Print each prompt before its continuation.
  bool quiet = false;
  bool show_logs = false;
};

int run_generate_command(const generate_options& options);

} // namespace troupe::cli
