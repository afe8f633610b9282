#pragma once
// The ways in which a bench runs one model over processes of this host, and their cluster files.

#include "actors/cli/bench.hpp"
#include "compute/model.hpp"
#include "config/dtype.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::cli {

/// Streams of the rows that have several.
inline constexpr std::size_t bench_streams = 8;

/// A way to run the model: nodes are processes of one rank.
struct cluster_way {
  std::string name;
  std::size_t pipeline = 1;
  std::size_t tensor = 1;
  std::size_t threads = 1; ///< Of each node.

  std::size_t nodes() const { return pipeline * tensor; }

  std::size_t all_threads() const { return nodes() * threads; }
};

/// Those that so many threads, and the model, allow: one process, two stages, a tensor group.
std::vector<cluster_way> cluster_ways(std::size_t threads, const compute::model& model);

/// The model as clusters run it.
struct clustered_model {
  const bench_options& options;
  std::filesystem::path folder;
  std::filesystem::path tokenizer; ///< Empty: the model's own.
  std::shared_ptr<const compute::model> model;
  dtype held;

  /// A model without a tokenizer borrows the demo's: only ids are asked for. Errors: those of
  /// opening the model, mismatch where its vocabulary is too small for that.
  static result<clustered_model> open(const bench_options& options,
                                      const std::filesystem::path& folder);

  /// The cluster file of a way.
  std::string file_of(const cluster_way& one) const;
};

} // namespace troupe::cli
