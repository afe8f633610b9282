#pragma once

#include "config/dtype.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::cli {

/// `troupe bench`: this machine, and what the program makes of it, in one run.
struct bench_options {
  std::filesystem::path folder;  ///< A model; empty: one of `shape` with random weights.
  std::string shape;             ///< Empty and no folder: without a model.
  std::string hold;              ///< Element type of held weights; empty: as stored, or bf16.
  std::size_t threads = 0;       ///< 0: the cores of the host.
  std::size_t prompt = 512;      ///< Tokens of the prompt.
  std::size_t steps = 64;        ///< Tokens decoded after it.
  std::size_t repeats = 3;       ///< Of each work of a cluster.
  double seconds = 0.4;          ///< For each measure of machine and kernels.
  std::vector<std::string> only; ///< Parts, see bench_parts(); empty: those that fit the rest.
  bool all = false;              ///< Every part for which there is a model.
  std::filesystem::path show;    ///< A report that was written before, instead of measuring.
  std::vector<std::filesystem::path> compare; ///< Two such reports.
  bool json = false;
  std::filesystem::path output; ///< The report goes there as JSON as well; empty: nowhere.
  std::filesystem::path svg;    ///< A folder for the pictures; empty: none.
  bool quiet = false;
};

/// The names of the parts, in the order in which they run.
const std::vector<std::string>& bench_parts();

int run_bench_command(const bench_options& options);

} // namespace troupe::cli
