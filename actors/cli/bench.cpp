#include "actors/cli/bench.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/model.hpp"
#include "actors/cli/progress.hpp"
#include "actors/host/host_memory.hpp"
#include "compute/cpu/machine.hpp"
#include "compute/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <unistd.h>

namespace troupe::cli {

namespace {

using compute::partition;

constexpr std::size_t read_region = std::size_t{1} << 30;
constexpr std::size_t prompt_repeats = 3;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[values.size() / 2];
}

// A folder of random weights that goes away with the command.
class passing_model {
public:
  static result<passing_model> make(const bench_options& options, std::size_t threads);

  passing_model(passing_model&& other) noexcept : folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }

  ~passing_model() {
    std::error_code ignored;
    if (!folder_.empty())
      std::filesystem::remove_all(folder_, ignored);
  }

  const std::filesystem::path& folder() const { return folder_; }

private:
  explicit passing_model(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

result<passing_model> passing_model::make(const bench_options& options, std::size_t threads) {
  compute::random_model wanted;
  if (auto known = apply_shape(options.shape, wanted); !known)
    return known.error();
  const auto hold = parse_held_dtype(options.hold.empty() ? "bf16" : options.hold);
  if (!hold)
    return hold.error();
  wanted.stored = is_quantised(*hold) ? dtype::bf16 : *hold; // Blocks are made at load.
  passing_model made(std::filesystem::temp_directory_path()
                     / fmt::format("troupe-bench-{}", ::getpid()));
  progress_line progress(options.quiet);
  const auto written = compute::write_random_model(
    made.folder_, wanted, threads, [&](std::size_t done, std::size_t total) {
      progress.show(fmt::format("writing weights: {} of {}", bytes_text(done), bytes_text(total)));
    });
  if (!written)
    return written.error();
  return made;
}

// What was measured. With one thread, seconds are those of the thread alone. Rates are medians of
// single passes, taken turn by turn with the machine's, so that both met the same conditions.
struct figures {
  std::size_t threads = 0;
  double read_rate = 0;    // Bytes per second of the machine.
  double flop_rate = 0;    // Operations per second of the machine.
  double decode_s = 0;     // One token.
  double decode_bytes = 0; // Weights and state that one token streams.
  double prompt_s = 0;     // The whole prompt.
  double prompt_flops = 0;
  std::size_t prompt_tokens = 0;

  double decode_ratio() const { return decode_bytes / decode_s / read_rate; }

  double prompt_ratio() const { return prompt_flops / prompt_s / flop_rate; }
};

// The whole model as one partition, with one sequence.
class bench_run {
public:
  static result<std::unique_ptr<bench_run>>
  load(const std::filesystem::path& folder, const bench_options& options, std::size_t threads);

  // `count` tokens from `position` on; seconds by the probe's clock.
  result<double>
  pass(const compute::cpu::machine_probe& probe, std::size_t position, std::size_t count);

  result<void>
  measure(const bench_options& options, compute::cpu::machine_probe& probe, figures& into);

private:
  result<void> run(std::size_t position, std::size_t count);

  std::shared_ptr<const compute::model> model_;
  std::unique_ptr<compute::device> device_;
  compute::solo_collective alone_;
  std::unique_ptr<partition> whole_;
  compute::partition_state state_;
  dtype hold_ = dtype::f32;
};

result<std::unique_ptr<bench_run>> bench_run::load(const std::filesystem::path& folder,
                                                   const bench_options& options,
                                                   std::size_t threads) {
  auto made = std::make_unique<bench_run>();
  auto model = compute::model::open(folder);
  if (!model)
    return model.error();
  made->model_ = std::move(*model);
  const auto& shape = made->model_->shape();
  const auto hold =
    options.hold.empty() ? result<dtype>(shape.stored) : parse_held_dtype(options.hold);
  if (!hold)
    return hold.error();
  made->hold_ = *hold;
  auto device = compute::make_device("cpu", {.threads = threads, .cores = {}});
  if (!device)
    return device.error();
  made->device_ = std::move(*device);
  progress_line progress(options.quiet);
  auto loaded = partition::load(
    made->model_,
    {.units = {0, shape.layers}, .owns_input = true, .owns_output = true},
    *hold,
    *made->device_,
    made->alone_,
    [&](std::size_t done, std::size_t total) {
      progress.show(fmt::format("loading: {} of {}", bytes_text(done), bytes_text(total)));
    });
  if (!loaded)
    return loaded.error();
  made->whole_ = std::move(*loaded);
  const auto positions = std::min(options.prompt + options.steps, shape.context);
  auto state =
    made->whole_->make_state((positions + compute::kv_page_tokens - 1) / compute::kv_page_tokens);
  if (!state)
    return state.error();
  made->state_ = std::move(*state);
  return made;
}

result<void> bench_run::run(std::size_t position, std::size_t count) {
  std::vector<token_id> tokens(count);
  for (std::size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<token_id>((position + i) * 7919 % model_->shape().vocabulary);
  compute::sequence_rows rows;
  rows.position = static_cast<std::uint32_t>(position);
  rows.count = static_cast<std::uint32_t>(count);
  for (std::size_t page = 0; page * compute::kv_page_tokens < position + count; ++page)
    rows.pages.push_back(static_cast<page_id>(page));
  if (auto begun = whole_->begin(compute::token_input{tokens}, {{rows}}, state_, 0); !begun)
    return begun.error();
  if (auto entered = whole_->enter(); !entered)
    return entered.error();
  while (const auto unit = whole_->next_unit()) {
    if (auto done = whole_->forward_unit(*unit); !done)
      return done.error();
  }
  if (auto left = whole_->leave(); !left)
    return left.error();
  auto output = whole_->finish(true);
  if (!output)
    return output.error();
  device_->synchronise();
  return {};
}

result<double>
bench_run::pass(const compute::cpu::machine_probe& probe, std::size_t position, std::size_t count) {
  const auto begun = probe.now();
  if (auto done = run(position, count); !done)
    return done.error();
  return probe.now() - begun;
}

result<void> bench_run::measure(const bench_options& options,
                                compute::cpu::machine_probe& probe,
                                figures& into) {
  const auto& shape = model_->shape();
  if (options.prompt == 0 || options.steps == 0 || options.prompt + options.steps > shape.context)
    return error{errc::invalid_argument,
                 fmt::format("a prompt of {} and {} more tokens; at least 1 each, and up to {} "
                             "together would work",
                             options.prompt,
                             options.steps,
                             shape.context)};
  std::vector<double> prompt_s;
  std::vector<double> decode_s;
  std::vector<double> flop_rates;
  std::vector<double> read_rates;
  for (std::size_t i = 0; i < prompt_repeats; ++i) {
    const auto taken = pass(probe, 0, options.prompt);
    if (!taken)
      return taken.error();
    prompt_s.push_back(*taken);
    for (int probes = 0; probes < 50; ++probes)
      flop_rates.push_back(probe.flop_rate());
  }
  for (std::size_t i = 0; i < options.steps; ++i) {
    const auto taken = pass(probe, options.prompt + i, 1);
    if (!taken)
      return taken.error();
    decode_s.push_back(*taken);
    for (int probes = 0; probes < 10; ++probes)
      read_rates.push_back(probe.read_rate());
  }
  const auto costs = model_->costs(hold_);
  const auto layers = static_cast<double>(shape.layers);
  const auto rows = static_cast<double>(options.prompt);
  // Scores and values of a row over the positions up to its own: 4 operations an element.
  const auto past = rows * (rows + 1) / 2 * 4 * static_cast<double>(shape.heads * shape.head_dim);
  // Keys and values of the positions before, in the middle of the decoded ones.
  const auto positions =
    static_cast<double>(options.prompt) + static_cast<double>(options.steps) / 2;
  const auto state = positions * static_cast<double>(state_.cache->bytes())
                     / static_cast<double>(state_.cache->shape().pages * compute::kv_page_tokens);
  into.decode_bytes = layers * costs.unit_bytes + costs.output_bytes + costs.input_bytes + state;
  into.prompt_flops = layers * (costs.unit_flops * rows + past) + costs.output_flops;
  into.prompt_tokens = options.prompt;
  into.prompt_s = median(prompt_s);
  into.decode_s = median(decode_s);
  into.flop_rate = median(flop_rates);
  into.read_rate = median(read_rates);
  return {};
}

void print_json(const figures& found, bool with_model) {
  fmt::print(R"({{"threads":{},"read_bytes_per_s":{:.6g},"flops_per_s":{:.6g})",
             found.threads,
             found.read_rate,
             found.flop_rate);
  if (with_model)
    fmt::print(R"(,"decode_tokens_per_s":{:.6g},"decode_bytes":{:.0f},"decode_ratio":{:.4f},)"
               R"("prompt_tokens":{},"prompt_tokens_per_s":{:.6g},"prompt_ratio":{:.4f})",
               1 / found.decode_s,
               found.decode_bytes,
               found.decode_ratio(),
               found.prompt_tokens,
               static_cast<double>(found.prompt_tokens) / found.prompt_s,
               found.prompt_ratio());
  fmt::print("}}\n");
}

void print_text(const figures& found, bool with_model) {
  fmt::print("machine: {}, reads {:.1f} GB/s, {:.1f} Gflop/s\n",
             counted(found.threads, "thread"),
             found.read_rate * 1e-9,
             found.flop_rate * 1e-9);
  if (!with_model)
    return;
  fmt::print("decode: {:.2f} tokens/s, {} a token, {:.1f} GB/s = {:.2f} of the machine's\n",
             1 / found.decode_s,
             bytes_text(static_cast<std::uint64_t>(found.decode_bytes)),
             found.decode_bytes / found.decode_s * 1e-9,
             found.decode_ratio());
  fmt::print("prompt of {}: {:.1f} tokens/s, {:.1f} Gflop/s = {:.2f} of the machine's\n",
             found.prompt_tokens,
             static_cast<double>(found.prompt_tokens) / found.prompt_s,
             found.prompt_flops / found.prompt_s * 1e-9,
             found.prompt_ratio());
}

result<figures> measure_alone(std::size_t threads) {
  const auto machine = compute::cpu::measure_machine({.threads = threads, .cores = {}}, {});
  if (!machine)
    return machine.error();
  figures found;
  found.threads = threads;
  found.read_rate = machine->read_bytes_per_second;
  found.flop_rate = machine->flops_per_second;
  return found;
}

result<figures> measure_model(const bench_options& options, std::size_t threads) {
  std::optional<passing_model> passing;
  auto folder = options.folder;
  if (folder.empty()) {
    auto made = passing_model::make(options, threads);
    if (!made)
      return made.error();
    passing.emplace(std::move(*made));
    folder = passing->folder();
  }
  auto run = bench_run::load(folder, options, threads);
  if (!run)
    return run.error();
  const auto spare = actors::available_memory_bytes();
  const auto region = spare == 0 ? read_region : std::min(read_region, spare / 2);
  auto probe = compute::cpu::machine_probe::make({.threads = threads, .cores = {}}, region);
  if (!probe)
    return probe.error();
  figures found;
  found.threads = threads;
  if (auto measured = (*run)->measure(options, *probe, found); !measured)
    return measured.error();
  return found;
}

} // namespace

int run_bench_command(const bench_options& options) {
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  const auto threads = options.threads != 0 ? options.threads : cores;
  const bool with_model = !options.folder.empty() || !options.shape.empty();
  const auto found = with_model ? measure_model(options, threads) : measure_alone(threads);
  if (!found)
    return fail(found.error());
  options.json ? print_json(*found, with_model) : print_text(*found, with_model);
  return 0;
}

} // namespace troupe::cli
