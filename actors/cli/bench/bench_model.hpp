#pragma once
// The model that a bench runs.

#include "actors/cli/bench.hpp"
#include "config/dtype.hpp"
#include "config/result.hpp"

#include <filesystem>

namespace troupe::cli {

/// A model folder; one of random weights goes away with it.
class bench_model_folder {
public:
  /// The folder of the options, or a new one of their shape, written on so many threads.
  static result<bench_model_folder> open(const bench_options& options, std::size_t threads);

  bench_model_folder(bench_model_folder&& other) noexcept;
  ~bench_model_folder();

  const std::filesystem::path& path() const { return folder_; }

  /// For people: the folder's name, or the shape's.
  const std::string& name() const { return name_; }

private:
  bench_model_folder(std::filesystem::path folder, std::string name, bool passing)
    : folder_(std::move(folder)), name_(std::move(name)), passing_(passing) {}

  std::filesystem::path folder_;
  std::string name_;
  bool passing_;
};

/// How its weights are held: as asked for, or as they are stored.
result<dtype> held_type(const bench_options& options, dtype stored);

} // namespace troupe::cli
