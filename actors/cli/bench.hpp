#pragma once

#include "config/dtype.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe::cli {

/// `troupe bench`: one process on this machine against what the machine can do, in the same run.
struct bench_options {
  std::filesystem::path folder; ///< A model; empty: one of `shape` with random weights.
  std::string shape;            ///< Empty and no folder: the machine alone.
  std::string hold;             ///< Element type of held weights; empty: as stored, or bf16.
  std::size_t threads = 0;      ///< 0: the cores of the host.
  std::size_t prompt = 512;     ///< Tokens of the prompt.
  std::size_t steps = 64;       ///< Tokens decoded after it.
  bool json = false;
  bool quiet = false;
};

int run_bench_command(const bench_options& options);

} // namespace troupe::cli
