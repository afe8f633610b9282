#pragma once
// The model that a bench runs.

#include "actors/cli/bench.hpp"
#include "actors/host/passing_path.hpp"
#include "config/dtype.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::cli {

/// A model folder; one of random weights goes away with it.
class bench_model_folder {
public:
  /// The folder of the options, or a new one of their shape, written on so many threads.
  static result<bench_model_folder> open(const bench_options& options, std::size_t threads);

  const std::filesystem::path& path() const { return passing_ ? passing_->path() : folder_; }

  /// For people: the folder's name, or the shape's.
  const std::string& name() const { return name_; }

private:
  explicit bench_model_folder(std::string name) : name_(std::move(name)) {}

  std::filesystem::path folder_;
  std::optional<actors::passing_path> passing_; ///< Random weights.
  std::string name_;
};

/// How its weights are held: as asked for, or as they are stored.
result<dtype> held_type(const bench_options& options, dtype stored);

} // namespace troupe::cli
