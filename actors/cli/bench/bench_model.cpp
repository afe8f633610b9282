#include "actors/cli/bench/bench_model.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/model.hpp"
#include "actors/cli/progress.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace troupe::cli {

bench_model_folder::bench_model_folder(bench_model_folder&& other) noexcept
  : folder_(std::move(other.folder_)), name_(std::move(other.name_)),
    passing_(std::exchange(other.passing_, false)) {}

bench_model_folder::~bench_model_folder() {
  std::error_code ignored;
  if (passing_)
    std::filesystem::remove_all(folder_, ignored);
}

result<bench_model_folder> bench_model_folder::open(const bench_options& options,
                                                    std::size_t threads) {
  if (!options.folder.empty())
    return bench_model_folder(
      options.folder, std::filesystem::canonical(options.folder).filename().string(), false);
  compute::random_model wanted;
  if (auto known = apply_shape(options.shape, wanted); !known)
    return known.error();
  const auto hold = held_type(options, dtype::bf16);
  if (!hold)
    return hold.error();
  wanted.stored = is_quantised(*hold) ? dtype::bf16 : *hold; // Blocks are made at load.
  bench_model_folder made(std::filesystem::temp_directory_path()
                            / fmt::format("troupe-bench-{}", ::getpid()),
                          options.shape,
                          true);
  progress_line progress(options.quiet);
  const auto written = compute::write_random_model(
    made.folder_, wanted, threads, [&](std::size_t done, std::size_t total) {
      progress.show(fmt::format("writing weights: {} of {}", bytes_text(done), bytes_text(total)));
    });
  if (!written)
    return written.error();
  return made;
}

result<dtype> held_type(const bench_options& options, dtype stored) {
  return options.hold.empty() ? result<dtype>(stored) : parse_held_dtype(options.hold);
}

} // namespace troupe::cli
