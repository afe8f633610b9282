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
  std::filesystem::path schema; ///< A JSON schema that answers follow; empty: any text.
  bool json = false;
  bool digests = false;
  std::uint32_t logprobs = 0;          ///< Most probable tokens to report for each token.
  std::vector<std::string> logit_bias; ///< "ID=BIAS"
  bool echo = false;                   ///< Print each prompt before its continuation.
  bool quiet = false;
  bool show_logs = false;
};

int run_generate_command(const generate_options& options);

} // namespace troupe::cli
