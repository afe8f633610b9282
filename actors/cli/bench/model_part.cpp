// bench_model (actors/cli/bench/bench_run.hpp).
#include "actors/cli/bench/bench_model.hpp"
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/command.hpp"
#include "compute/partition.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {

namespace {

using compute::partition;
using compute::cpu::machine_probe;

constexpr std::size_t prompt_repeats = 5;

/// The whole model as one partition, with one sequence.
class lone_model {
public:
  static result<std::unique_ptr<lone_model>>
  load(const std::filesystem::path& folder, const bench_options& options, std::size_t threads);

  /// `count` tokens from `position` on; seconds by the probe's clock.
  result<double> pass(const machine_probe& probe, std::size_t position, std::size_t count);

  const compute::model_shape& shape() const { return model_->shape(); }

  compute::model_costs costs() const { return model_->costs(hold_); }

  bool is_quantised_model() const { return is_quantised(hold_); }

  /// Of keys and values, for one position on all layers.
  double state_bytes() const {
    return static_cast<double>(state_.cache->bytes())
           / static_cast<double>(state_.cache->shape().pages * compute::kv_page_tokens);
  }

private:
  result<void> run(std::size_t position, std::size_t count);

  std::shared_ptr<const compute::model> model_;
  std::unique_ptr<compute::device> device_;
  compute::solo_collective alone_;
  std::unique_ptr<partition> whole_;
  compute::partition_state state_;
  dtype hold_ = dtype::f32;
};

result<std::unique_ptr<lone_model>> lone_model::load(const std::filesystem::path& folder,
                                                     const bench_options& options,
                                                     std::size_t threads) {
  auto made = std::make_unique<lone_model>();
  auto model = compute::model::open(folder);
  if (!model)
    return model.error();
  made->model_ = std::move(*model);
  const auto& shape = made->model_->shape();
  const auto hold = held_type(options, shape.stored);
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
  auto state = made->whole_->make_state(compute::pages_for(positions));
  if (!state)
    return state.error();
  made->state_ = std::move(*state);
  return made;
}

result<void> lone_model::run(std::size_t position, std::size_t count) {
  std::vector<token_id> tokens(count);
  for (std::size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<token_id>((position + i) * 7919 % shape().vocabulary);
  compute::sequence_rows rows;
  rows.position = static_cast<std::uint32_t>(position);
  rows.count = static_cast<std::uint32_t>(count);
  for (std::size_t page = 0; page < compute::pages_for(position + count); ++page)
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
lone_model::pass(const machine_probe& probe, std::size_t position, std::size_t count) {
  const auto begun = probe.now();
  if (auto done = run(position, count); !done)
    return done.error();
  return probe.now() - begun;
}

/// Rates of single passes beside what the machine gives next to each.
class pass_rates {
public:
  pass_rates(lone_model& model, machine_probe& probe, bench_run& run)
    : model_(model), probe_(probe), run_(run) {}

  result<void> prompt(std::size_t tokens);
  result<void> decode(std::size_t begin, std::size_t steps);

private:
  /// Median of passes of the probe, some milliseconds in all.
  double rate(double (machine_probe::*pass)(), std::size_t count) {
    std::vector<double> rates;
    for (std::size_t i = 0; i < count; ++i)
      rates.push_back((probe_.*pass)());
    return median_of(std::move(rates));
  }

  void add(bench_row row) {
    row.threads = probe_.threads();
    row.what += fmt::format(", {}", counted(row.threads, "thread"));
    run_.add(std::move(row));
  }

  lone_model& model_;
  machine_probe& probe_;
  bench_run& run_;
};

result<void> pass_rates::prompt(std::size_t tokens) {
  const auto& shape = model_.shape();
  const auto costs = model_.costs();
  const auto rows = static_cast<double>(tokens);
  const auto layers = static_cast<double>(shape.layers);
  // Scores and values of a row over the positions up to its own: 4 operations an element.
  const auto past = rows * (rows + 1) / 2 * 4 * static_cast<double>(shape.heads * shape.head_dim);
  const auto products = layers * costs.unit_flops * rows + costs.output_flops;
  const auto attention = layers * past;
  std::vector<double> rates, limits;
  for (std::size_t i = 0; i < prompt_repeats; ++i) {
    const auto taken = model_.pass(probe_, 0, tokens);
    if (!taken)
      return taken.error();
    const auto flops = rate(&machine_probe::flop_rate, 50);
    const auto dots = model_.is_quantised_model() ? rate(&machine_probe::dot_rate, 50) : flops;
    rates.push_back(rows / *taken);
    limits.push_back(rows / (products / dots + attention / flops));
  }
  auto row = row_beside(row_of("model", fmt::format("prompt of {}", tokens), "tokens/s", {}),
                        rates,
                        limits,
                        model_.is_quantised_model() ? "int8 multiply-add" : "f32 multiply-add");
  row.operations = (products + attention) / rows;
  add(std::move(row));
  return {};
}

result<void> pass_rates::decode(std::size_t begin, std::size_t steps) {
  const auto costs = model_.costs();
  // Keys and values of the positions before, in the middle of the decoded ones.
  const auto positions = static_cast<double>(begin) + static_cast<double>(steps) / 2;
  const auto bytes = static_cast<double>(model_.shape().layers) * costs.unit_bytes
                     + costs.output_bytes + costs.input_bytes + positions * model_.state_bytes();
  std::vector<double> rates, limits;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto taken = model_.pass(probe_, begin + i, 1);
    if (!taken)
      return taken.error();
    rates.push_back(1 / *taken);
    limits.push_back(rate(&machine_probe::read_rate, 10) / bytes);
  }
  auto row = row_beside(row_of("model", "decode", "tokens/s", {}), rates, limits, "read bandwidth");
  row.bytes = bytes;
  add(std::move(row));
  return {};
}

result<void> measure(bench_run& run, const std::filesystem::path& folder, std::size_t threads) {
  if (auto on = run.begin(fmt::format("the model, {}", counted(threads, "thread"))); !on)
    return on;
  const auto& options = run.options();
  auto model = lone_model::load(folder, options, threads);
  if (!model)
    return model.error();
  const auto probe = run.probe(threads);
  if (!probe)
    return probe.error();
  pass_rates rates(**model, **probe, run);
  if (auto done = rates.prompt(options.prompt); !done)
    return done;
  return rates.decode(options.prompt, options.steps);
}

} // namespace

result<void> bench_model(bench_run& run, const std::filesystem::path& folder) {
  const bool chosen = run.options().threads != 0;
  if (!chosen && run.threads() > 1)
    if (auto done = measure(run, folder, 1); !done)
      return done;
  return measure(run, folder, run.threads());
}

} // namespace troupe::cli
