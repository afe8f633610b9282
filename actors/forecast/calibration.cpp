#include "actors/forecast/calibration.hpp"

#include "actors/forecast/passes.hpp"
#include "actors/forecast/thread_hops.hpp"
#include "actors/host/host_processor.hpp"
#include "actors/host/passing_path.hpp"
#include "compute/architectures/random_model.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "compute/cpu/machine.hpp"
#include "compute/partition.hpp"
#include "compute/sampler.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

namespace troupe::actors {

namespace {

using compute::partition;

/// A folder of random weights.
result<passing_path> write_weights(const std::string& name, const compute::random_model& wanted) {
  passing_path made("speed-" + name);
  if (auto written = compute::write_random_model(made.path(), wanted, 1, [](auto, auto) {});
      !written)
    return written.error();
  return made;
}

/// Seconds of a pass: of its layers, and of what comes before and after them.
struct pass_time {
  double units_s = 0;
  double rest_s = 0;
};

constexpr std::size_t positions = 1088;

/// A whole model on a device of its own.
class trial {
public:
  static result<std::unique_ptr<trial>>
  load(const std::filesystem::path& folder, dtype hold, std::size_t threads) {
    auto made = std::make_unique<trial>();
    auto model = compute::model::open(folder);
    if (!model)
      return model.error();
    made->model_ = *std::move(model);
    auto device = compute::make_device("cpu", {.threads = threads, .cores = {}});
    if (!device)
      return device.error();
    made->device_ = *std::move(device);
    const auto layers = made->model_->shape().layers;
    auto whole = partition::load(made->model_,
                                 {.units = {0, layers}, .owns_input = true, .owns_output = true},
                                 hold,
                                 *made->device_,
                                 made->alone_,
                                 [](auto, auto) {});
    if (!whole)
      return whole.error();
    made->whole_ = *std::move(whole);
    auto state = made->whole_->make_state(compute::pages_for(positions));
    if (!state)
      return state.error();
    made->state_ = *std::move(state);
    return made;
  }

  const compute::model_shape& shape() const { return model_->shape(); }

  double weight_bytes() const { return static_cast<double>(whole_->report().bytes_held); }

  /// Passes for a while, three at least.
  result<pass_time> measure(std::size_t position, std::size_t rows) {
    std::vector<double> units;
    std::vector<double> rest;
    if (auto warm = pass(position, rows); !warm)
      return warm.error();
    const auto end = clock::now() + std::chrono::milliseconds(40);
    do {
      const auto taken = pass(position, rows);
      if (!taken)
        return taken.error();
      units.push_back(taken->units_s);
      rest.push_back(taken->rest_s);
    } while (clock::now() < end || units.size() < 3);
    return pass_time{quartile(units), quartile(rest)};
  }

private:
  result<pass_time> pass(std::size_t position, std::size_t rows) {
    compute::sequence_rows part;
    part.position = static_cast<std::uint32_t>(position);
    part.count = static_cast<std::uint32_t>(rows);
    for (std::size_t page = 0; page < compute::pages_for(position + rows); ++page)
      part.pages.push_back(static_cast<page_id>(page));
    const std::vector<token_id> tokens(rows, 1);
    const auto begun = clock::now();
    auto good = whole_->begin(compute::token_input{tokens}, {{part}}, state_, 0);
    if (good)
      good = whole_->enter();
    const auto entered = clock::now();
    while (const auto unit = good ? whole_->next_unit() : std::nullopt)
      good = whole_->forward_unit(*unit);
    const auto units_s = seconds_since(entered);
    if (good)
      good = whole_->leave();
    if (!good)
      return good.error();
    if (auto output = whole_->finish(true); !output)
      return output.error();
    return pass_time{units_s, seconds_since(begun) - units_s};
  }

  std::shared_ptr<const compute::model> model_;
  std::unique_ptr<compute::device> device_;
  compute::solo_collective alone_;
  std::unique_ptr<partition> whole_;
  compute::partition_state state_;
};

/// A wide layer, whose products are nearly all of its time, and slim ones, where they are nothing.
compute::random_model wide_model(dtype hold) {
  compute::random_model wanted;
  wanted.layers = 1;
  wanted.hidden = 1024;
  wanted.heads = 16;
  wanted.kv_heads = 4;
  wanted.ffn = 2752;
  wanted.stored = is_quantised(hold) ? dtype::bf16 : hold;
  return wanted;
}

compute::random_model slim_model(dtype hold) {
  auto wanted = wide_model(hold);
  wanted.layers = 8;
  wanted.hidden = 64;
  wanted.heads = 2;
  wanted.kv_heads = 1;
  wanted.ffn = 128;
  return wanted;
}

double unit_elements(const compute::model_shape& shape) {
  return static_cast<double>(shape.hidden)
         * static_cast<double>(2 * shape.heads * shape.head_dim
                               + 2 * shape.kv_heads * shape.head_dim + 3 * shape.ffn);
}

/// The figures that one number of threads gives.
struct measured {
  std::vector<product_point> points;
  double unit_s = 0;
  double begin_s = 0;
  double state_byte_s = 0;
  double attention_op_s = 0;
  double weight_bytes = 0;
};

/// What attention adds to a pass when there are positions before it.
result<void> measure_attention(trial& wide, measured& into) {
  constexpr std::size_t past = 1024;
  const auto& shape = wide.shape();
  const auto added = [&](std::size_t rows) -> result<double> {
    const auto far = wide.measure(past, rows);
    if (!far)
      return far.error();
    const auto near = wide.measure(0, rows);
    if (!near)
      return near.error();
    return std::max(1e-9, far->units_s - near->units_s);
  };
  const auto one = added(1);
  const auto many = one ? added(64) : one;
  if (!many)
    return many.error();
  const auto dim = static_cast<double>(shape.head_dim);
  const auto bytes = past * 2 * sizeof(float) * dim * static_cast<double>(shape.kv_heads);
  const auto work = past * 64 * 4 * dim * static_cast<double>(shape.heads);
  into.state_byte_s = *one / bytes;
  into.attention_op_s = *many / work;
  return {};
}

result<measured> measure_threads(const passing_path& wide_folder,
                                 const passing_path& slim_folder,
                                 dtype hold,
                                 std::size_t threads) {
  auto wide = trial::load(wide_folder.path(), hold, threads);
  if (!wide)
    return wide.error();
  auto slim = trial::load(slim_folder.path(), hold, threads);
  if (!slim)
    return slim.error();
  measured made;
  made.weight_bytes = (*wide)->weight_bytes();
  const auto bare = (*slim)->measure(0, 1);
  if (!bare)
    return bare.error();
  made.unit_s = bare->units_s / static_cast<double>((*slim)->shape().layers);
  made.begin_s = bare->rest_s;
  for (const std::size_t rows : {1, 4, 8, 16, 64, 256}) {
    const auto taken = (*wide)->measure(0, rows);
    if (!taken)
      return taken.error();
    const auto products_s = std::max(taken->units_s - made.unit_s, taken->units_s / 2);
    made.points.push_back(
      {static_cast<double>(rows), products_s / unit_elements((*wide)->shape())});
  }
  if (auto done = measure_attention(**wide, made); !done)
    return done.error();
  return made;
}

/// Bandwidth by how much is read again and again: as much as the weights of the trial, which a
/// cache may hold, some times that, since the step from cache to memory is steep, and far more.
/// Turn by turn, since it is their ratios that count.
result<std::vector<read_point>> measure_reads(double weight_bytes) {
  const std::array sizes{
    weight_bytes, 2 * weight_bytes, 4 * weight_bytes, std::max(8 * weight_bytes, 256e6)};
  std::vector<compute::cpu::machine_probe> probes;
  for (const auto bytes : sizes) {
    auto made = compute::cpu::machine_probe::make({.threads = 1, .cores = {}},
                                                  static_cast<std::size_t>(bytes));
    if (!made)
      return made.error();
    probes.push_back(*std::move(made));
  }
  std::vector<double> rates;
  std::array<std::vector<double>, sizes.size()> ratios;
  for (int turn = 0; turn < 24; ++turn) {
    rates.push_back(probes.front().read_rate());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      ratios[i].push_back(i == 0 ? 1.0 : std::min(1.0, probes[i].read_rate() / rates.back()));
  }
  std::sort(rates.begin(), rates.end());
  const auto rate = rates[3 * rates.size() / 4];
  std::vector<read_point> found;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::sort(ratios[i].begin(), ratios[i].end());
    found.push_back({sizes[i], rate * ratios[i][ratios[i].size() / 2]});
  }
  return found;
}

/// A logit looked at by the sampler, without a temperature.
double measure_choice() {
  std::vector<float> logits(32'000);
  std::iota(logits.begin(), logits.end(), 0.0f);
  std::vector<double> taken;
  for (int round = 0; round < 20; ++round) {
    const auto begun = clock::now();
    if (const auto chosen = compute::sample(logits, {}, {}, 0); !chosen)
      break;
    taken.push_back(seconds_since(begun));
  }
  return taken.empty() ? 1e-9 : quartile(taken) / static_cast<double>(logits.size());
}

} // namespace

calibration_key key_of_this_host(dtype hold, const std::string& version) {
  return {.processor = processor_name(),
          .instruction_set = compute::cpu::instruction_set(),
          .version = version,
          .cores = std::max(std::thread::hardware_concurrency(), 1u),
          .hold = hold};
}

result<calibration> measure_here(const calibration_key& key) {
  const auto wide = write_weights("wide", wide_model(key.hold));
  if (!wide)
    return wide.error();
  const auto slim = write_weights("slim", slim_model(key.hold));
  if (!slim)
    return slim.error();
  const auto one = measure_threads(*wide, *slim, key.hold, 1);
  if (!one)
    return one.error();
  const auto all = key.cores == 1 ? one : measure_threads(*wide, *slim, key.hold, key.cores);
  if (!all)
    return all.error();
  const auto reads = measure_reads(one->weight_bytes);
  if (!reads)
    return reads.error();
  calibration made;
  auto& speed = made.speed;
  speed.name = "measured here";
  speed.cores = key.cores;
  speed.products = {one->points, all->points};
  speed.reads = *reads;
  speed.measured_bytes = one->weight_bytes;
  speed.unit_s = one->unit_s;
  speed.unit_all_s = all->unit_s;
  speed.begin_s = one->begin_s;
  speed.state_byte_s = one->state_byte_s;
  speed.attention_op_s = one->attention_op_s;
  speed.logit_s = measure_choice();
  const auto hops = measure_hops();
  if (!hops)
    return hops.error();
  speed.awake_hop_s = hops->awake_s;
  speed.asleep_hop_s = hops->asleep_s;
  made.reducing = hops->sums;
  return made;
}

} // namespace troupe::actors
