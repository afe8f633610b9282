#include "actors/cli/bench/bench_model.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/model.hpp"
#include "actors/cli/progress.hpp"

#include <fmt/format.h>

namespace troupe::cli {

result<bench_model_folder> bench_model_folder::open(const bench_options& options,
                                                    std::size_t threads) {
  if (!options.folder.empty()) {
    bench_model_folder made(std::filesystem::canonical(options.folder).filename().string());
    made.folder_ = options.folder;
    return made;
  }
  compute::random_model wanted;
  if (auto known = apply_shape(options.shape, wanted); !known)
    return known.error();
  const auto hold = held_type(options, dtype::bf16);
  if (!hold)
    return hold.error();
  wanted.stored = is_quantised(*hold) ? dtype::bf16 : *hold; // Blocks are made at load.
  bench_model_folder made(options.shape);
  made.passing_.emplace("bench");
  progress_line progress(options.quiet);
  const auto written = compute::write_random_model(
    made.path(), wanted, threads, [&](std::size_t done, std::size_t total) {
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
