#pragma once
// Seeded random weights, drawn in parallel and written piece by piece.

#include "compute/architectures/parameters.hpp"
#include "compute/architectures/random_model.hpp"
#include "config/result.hpp"

#include <atomic>
#include <filesystem>
#include <mutex>
#include <vector>

namespace troupe::compute {

/// Numbers come from a counter, so that every piece can be drawn by itself: number i of a tensor is
/// a function of seed, name and i.
class random_weights {
public:
  /// All of them outlive it. `parameters` is the whole model, for the progress.
  random_weights(const random_model& wanted,
                 const std::vector<parameter>& parameters,
                 std::size_t threads,
                 const write_progress& progress);

  /// Writes one file with these parameters. The progress is called by one thread at a time.
  result<void> write(const std::filesystem::path& file, const std::vector<const parameter*>& which);

private:
  void add_progress(std::size_t bytes);

  const random_model& wanted_;
  std::size_t threads_;
  const write_progress& progress_;
  std::size_t total_bytes_ = 0;
  std::mutex progress_mutex_;
  std::size_t done_bytes_ = 0;
};

} // namespace troupe::compute
