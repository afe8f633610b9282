// bench_kernels (actors/cli/bench/bench_run.hpp): the products of one layer of the 1.1B shape, and
// attention. Several layers are held, so that together they are above any cache, and are used in
// turn: what is measured comes from memory, as in a model that is decoded. Each call is taken
// between two passes of the probe, so that other work on the machine weighs on both.
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/command.hpp"
#include "actors/host/host_memory.hpp"
#include "compute/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <unistd.h>

namespace troupe::cli {

namespace {

using compute::device;
using steady = std::chrono::steady_clock;

struct product {
  std::size_t rows;    ///< Output features.
  std::size_t columns; ///< Input features.
};

/// Query, key and value; output; gate and up; down.
constexpr std::array layer_products{
  product{2560, 2048}, product{2048, 2048}, product{11264, 2048}, product{2048, 5632}};
constexpr std::size_t heads = 32;
constexpr std::size_t kv_heads = 4;
constexpr std::size_t head_dim = 64;
constexpr std::size_t layers = 22;

constexpr std::size_t least_set = std::size_t{256} << 20;
constexpr std::size_t most_set = std::size_t{1} << 30;
constexpr std::size_t least_calls = 5;

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 numbers(1);
  std::vector<float> values(count);
  for (auto& value : values)
    value = static_cast<float>(numbers() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

/// Bytes that are above the last cache, if memory allows.
std::size_t working_set() {
  const auto cache = std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0l);
  const auto wanted = std::clamp(static_cast<std::size_t>(cache) * 3 / 2, least_set, most_set);
  const auto spare = actors::available_memory_bytes();
  return spare == 0 ? wanted : std::min(wanted, spare / 4);
}

/// What one call reads and does, and what it is compared with.
struct work {
  double bytes = 0;
  double operations = 0;
  bool whole_numbers = false; ///< Compared with 8-bit multiply-adds.
  bool by_bytes = false;      ///< Shown in GB/s.
};

/// The device with its probe: what all kernels are measured on.
class kernel_bench {
public:
  kernel_bench(bench_run& run, std::unique_ptr<device> on, compute::cpu::machine_probe& probe)
    : run_(run), on_(std::move(on)), probe_(probe) {}

  device& on() { return *on_; }

  template <class Call>
  result<void> measure(const std::string& what, const work& of, const Call& call) {
    if (auto started = run_.begin("kernels: " + what); !started)
      return started;
    const auto amount = (of.by_bytes ? of.bytes : of.operations) * 1e-9;
    std::vector<double> rates, limits;
    double reads_s = 0;
    double computes_s = 0;
    double taken = 0;
    const auto end = steady::now() + run_.time();
    while (rates.size() < least_calls || steady::now() < end) {
      const auto before = passes(of, taken);
      const auto start = probe_.now();
      call();
      taken = probe_.now() - start;
      const auto after = passes(of, taken);
      const auto reading = std::min(before.reading, after.reading);
      const auto computing = std::min(before.computing, after.computing);
      rates.push_back(amount / taken);
      limits.push_back(amount / std::max(reading, computing));
      reads_s += reading;
      computes_s += computing;
    }
    const auto* limited_by = reads_s > computes_s ? "read bandwidth"
                             : of.whole_numbers   ? "int8 multiply-add"
                                                  : "f32 multiply-add";
    auto row = row_beside(row_of("kernels",
                                 fmt::format("{}, {}", what, counted(probe_.threads(), "thread")),
                                 of.by_bytes ? "GB/s" : "Gop/s",
                                 {}),
                          rates,
                          limits,
                          limited_by);
    row.bytes = of.bytes;
    row.operations = of.operations;
    row.threads = probe_.threads();
    run_.add(std::move(row));
    return {};
  }

private:
  struct seconds_at_least {
    double reading;
    double computing;
  };

  /// The best of some passes, of about a tenth of the time that a call takes: a pass that had to
  /// wait for a core is no limit.
  seconds_at_least passes(const work& of, double call_s) {
    constexpr double pass_s = 2e-3; // One of each.
    auto left = static_cast<int>(std::clamp(call_s / 10 / pass_s, 1.0, 20.0));
    double read_rate = 0;
    double compute_rate = 0;
    for (; left > 0; --left) {
      read_rate = std::max(read_rate, probe_.read_rate());
      compute_rate =
        std::max(compute_rate, of.whole_numbers ? probe_.dot_rate() : probe_.flop_rate());
    }
    return {of.bytes / read_rate, of.operations / compute_rate};
  }

  bench_run& run_;
  std::unique_ptr<device> on_;
  compute::cpu::machine_probe& probe_;
};

using packed_layer = std::array<std::unique_ptr<compute::matrix>, layer_products.size()>;

result<packed_layer> pack_layer(device& on, const std::vector<float>& values, dtype held) {
  packed_layer made;
  for (std::size_t i = 0; i < layer_products.size(); ++i) {
    const auto& [rows, columns] = layer_products[i];
    auto packed =
      on.pack(compute::weight_source{.data = reinterpret_cast<const std::byte*>(values.data()),
                                     .stored = dtype::f32,
                                     .rows = rows,
                                     .columns = columns,
                                     .stride = columns,
                                     .owner = nullptr},
              held);
    if (!packed)
      return packed.error();
    made[i] = std::move(*packed);
  }
  return made;
}

work work_of_layer(dtype held, std::size_t rows) {
  work of{.bytes = 0, .operations = 0, .whole_numbers = is_quantised(held), .by_bytes = rows <= 8};
  for (const auto& one : layer_products) {
    of.bytes += static_cast<double>(held_bytes(held, one.rows, one.columns));
    of.operations += 2.0 * static_cast<double>(rows * one.rows * one.columns);
  }
  return of;
}

/// Rows of activations, of which each product reads and writes as many columns as it has.
struct activations {
  std::size_t rows;
  std::vector<float> in;
  std::vector<float> out;

  explicit activations(std::size_t count)
    : rows(count), in(random_floats(count * 5632)), out(count * 11264) {}

  compute::tensor input(std::size_t columns) { return {in.data(), rows, columns}; }

  compute::tensor output(std::size_t columns) { return {out.data(), rows, columns}; }
};

result<void> bench_products(kernel_bench& bench, dtype held) {
  const auto values = random_floats(11264 * 2048);
  std::vector<packed_layer> all;
  const auto set = static_cast<double>(working_set());
  while (static_cast<double>(all.size()) * work_of_layer(held, 1).bytes < set) {
    auto packed = pack_layer(bench.on(), values, held);
    if (!packed)
      return packed.error();
    all.push_back(std::move(*packed));
  }
  for (const std::size_t rows : {1, 8, 64, 512}) {
    activations step(rows);
    std::size_t next = 0;
    const auto call = [&] {
      for (std::size_t i = 0; i < layer_products.size(); ++i)
        bench.on().matmul(*all[next][i],
                          step.input(layer_products[i].columns),
                          {},
                          step.output(layer_products[i].rows),
                          {});
      next = (next + 1) % all.size();
    };
    const auto what =
      fmt::format("products of a layer, {}, {}", to_string(held), counted(rows, "row"));
    if (auto done = bench.measure(what, work_of_layer(held, rows), call); !done)
      return done;
  }
  return {};
}

/// `count` new rows of one sequence at `position`, on each layer in turn.
result<void> bench_attention(kernel_bench& bench, std::size_t position, std::size_t count) {
  const auto length = position + count;
  const auto pages = compute::pages_for(length);
  auto cache = bench.on().make_kv_cache(
    {.layers = layers, .kv_heads = kv_heads, .head_dim = head_dim, .pages = pages});
  if (!cache)
    return cache.error();
  compute::sequence_rows rows;
  rows.count = static_cast<std::uint32_t>(length);
  for (std::size_t page = 0; page < pages; ++page)
    rows.pages.push_back(static_cast<page_id>(page));
  auto kept = random_floats(length * kv_heads * head_dim);
  const compute::tensor state{kept.data(), length, kv_heads * head_dim};
  for (std::size_t layer = 0; layer < layers; ++layer)
    bench.on().store_kv(**cache, layer, {{rows}}, state, state);
  rows.position = static_cast<std::uint32_t>(position);
  rows.count = static_cast<std::uint32_t>(count);
  std::array<std::uint32_t, heads> kv_head_of{};
  for (std::size_t head = 0; head < heads; ++head)
    kv_head_of[head] = static_cast<std::uint32_t>(head * kv_heads / heads);
  const auto columns = heads * head_dim;
  auto queries = random_floats(count * columns);
  std::vector<float> out(queries.size());
  const compute::batch step{{rows}};
  std::size_t layer = 0;
  const auto call = [&] {
    bench.on().attention(**cache,
                         {.layer = layer,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .head_dim = head_dim,
                          .scale = 0.125f,
                          .window = 0,
                          .kv_head_of = kv_head_of},
                         step,
                         {queries.data(), count, columns},
                         {out.data(), count, columns});
    layer = (layer + 1) % layers;
  };
  const auto seen = static_cast<double>(count)
                    * (static_cast<double>(position) + (static_cast<double>(count) + 1) / 2);
  const work of{.bytes = static_cast<double>((*cache)->bytes()) / layers,
                .operations = 4.0 * seen * static_cast<double>(columns),
                .whole_numbers = false,
                .by_bytes = count == 1};
  return bench.measure(count == 1 ? fmt::format("attention of a row over {}", length)
                                  : fmt::format("attention of {} rows", count),
                       of,
                       call);
}

} // namespace

result<void> bench_kernels(bench_run& run) {
  const auto probe = run.probe(run.threads());
  if (!probe)
    return probe.error();
  auto on = compute::make_device("cpu", {.threads = run.threads(), .cores = {}});
  if (!on)
    return on.error();
  kernel_bench bench(run, std::move(*on), **probe);
  for (const auto held : {dtype::f32, dtype::bf16, dtype::f16, dtype::int8, dtype::int4})
    if (auto done = bench_products(bench, held); !done)
      return done;
  for (const std::size_t position : {511, 2047})
    if (auto done = bench_attention(bench, position, 1); !done)
      return done;
  return bench_attention(bench, 0, 512);
}

} // namespace troupe::cli
