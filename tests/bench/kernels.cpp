// bench_kernels: the CPU kernels against what the processor can do. One JSON line a measure, with
// the ratio to the limit that binds it: read bandwidth or multiply-adds (of f32, also for weights
// of 8 and 4 bits, whose products in whole numbers may be above that). The limits are measured by
// passes of a millisecond just before and after each call, so that other work on the machine weighs
// on both; "best" and "median" are of the ratios. With one thread all times are those of the thread
// (it may wait for a core as long as it likes); with more they are the wall's: keep the machine
// idle.
//
//   bench_kernels [threads] [seconds per measure]
//
// Weights of one shape are held many times over, so that together they are well above any cache,
// and are used in turn: what is measured comes from memory, as in a model that is decoded.

#include "compute/cpu/machine.hpp"
#include "compute/device.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

using namespace troupe;
using namespace troupe::compute;

namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t working_set = std::size_t{5} << 28; // 1.25 GiB

struct bench {
  device& on;
  cpu::machine_probe& probe;
  double seconds; ///< For each measure.
};

/// Bytes that a call must read and operations that it must do.
struct amount {
  double bytes;
  double flops;
};

enum class bound { read, multiply };

/// Calls until the time is over, each between two passes of the probe, and prints the outcome.
template <class Call>
void measure(const bench& b, const std::string& what, bound by, amount of, const Call& call) {
  const auto limit = [&] { return by == bound::read ? b.probe.read_rate() : b.probe.flop_rate(); };
  std::vector<double> ratios, taken;
  const auto end = steady::now() + std::chrono::duration<double>(b.seconds);
  while (taken.size() < 5 || steady::now() < end) {
    const auto before = limit();
    const auto start = b.probe.now();
    call();
    taken.push_back(b.probe.now() - start);
    const auto rate = (by == bound::read ? of.bytes : of.flops) / taken.back();
    ratios.push_back(rate / ((before + limit()) / 2));
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(taken.begin(), taken.end());
  fmt::print("{{\"measure\": \"{}\", \"limit\": \"{}\", \"median_of_limit\": {:.3f}, "
             "\"best_of_limit\": {:.3f}, \"best_us\": {:.1f}, \"median_us\": {:.1f}, "
             "\"best_gb_per_s\": {:.2f}, \"best_gflops\": {:.1f}}}\n",
             what,
             by == bound::read ? "read bandwidth" : "multiply-adds",
             ratios[ratios.size() / 2],
             ratios.back(),
             taken.front() * 1e6,
             taken[taken.size() / 2] * 1e6,
             of.bytes / taken.front() * 1e-9,
             of.flops / taken.front() * 1e-9);
  std::fflush(stdout);
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 numbers(1);
  std::vector<float> values(count);
  for (auto& value : values)
    value = static_cast<float>(numbers() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

void fail(const error& cause) {
  fmt::print(stderr, "bench_kernels: {}\n", cause.what);
  std::exit(1);
}

template <class T>
T take(result<T> made) {
  if (!made)
    fail(made.error());
  return std::move(*made);
}

void bench_matmul(const bench& b, dtype held, std::size_t rows, std::size_t columns) {
  const auto values = random_floats(rows * columns);
  const weight_source source{.data = reinterpret_cast<const std::byte*>(values.data()),
                             .stored = dtype::f32,
                             .rows = rows,
                             .columns = columns,
                             .stride = columns,
                             .owner = nullptr};
  std::vector<std::unique_ptr<matrix>> weights;
  for (std::size_t bytes = 0; bytes < working_set; bytes += weights.back()->bytes())
    weights.push_back(take(b.on.pack(source, held)));
  for (std::size_t m : {1, 2, 4, 8, 16, 64, 512}) {
    auto x = random_floats(m * columns);
    std::vector<float> out(m * rows);
    std::size_t next = 0;
    const amount of{static_cast<double>(held_bytes(held, rows, columns)),
                    2.0 * static_cast<double>(m * rows * columns)};
    measure(b,
            fmt::format("matmul {} {}x{} m {}", to_string(held), columns, rows, m),
            m <= 16 ? bound::read : bound::multiply,
            of,
            [&] {
              b.on.matmul(*weights[next], {x.data(), m, columns}, {}, {out.data(), m, rows}, {});
              next = (next + 1) % weights.size();
            });
  }
}

struct heads {
  std::size_t count, kv_heads, head_dim;
};

/// `count` new rows of one sequence at `position`.
void bench_attention(const bench& b, heads h, std::size_t position, std::size_t count) {
  const auto length = position + count;
  const auto page_count = (length + kv_page_tokens - 1) / kv_page_tokens;
  auto cache = take(b.on.make_kv_cache(
    {.layers = 1, .kv_heads = h.kv_heads, .head_dim = h.head_dim, .pages = page_count}));
  sequence_rows rows{
    .pages = {}, .first_row = 0, .position = 0, .count = static_cast<std::uint32_t>(length)};
  for (std::size_t page = 0; page < page_count; ++page)
    rows.pages.push_back(static_cast<page_id>(page));
  const auto kv_columns = h.kv_heads * h.head_dim;
  auto kept = random_floats(length * kv_columns);
  b.on.store_kv(
    *cache, 0, {{rows}}, {kept.data(), length, kv_columns}, {kept.data(), length, kv_columns});
  rows.position = static_cast<std::uint32_t>(position);
  rows.count = static_cast<std::uint32_t>(count);
  std::vector<std::uint32_t> kv_head_of(h.count);
  for (std::size_t head = 0; head < h.count; ++head)
    kv_head_of[head] = static_cast<std::uint32_t>(head * h.kv_heads / h.count);
  const attention_call call{.layer = 0,
                            .heads = h.count,
                            .kv_heads = h.kv_heads,
                            .head_dim = h.head_dim,
                            .scale = 0.1f,
                            .window = 0,
                            .kv_head_of = kv_head_of};
  const auto columns = h.count * h.head_dim;
  auto queries = random_floats(count * columns);
  std::vector<float> out(queries.size());
  const batch step{{rows}};
  const double seen =
    static_cast<double>(count) * (static_cast<double>(position) + (count + 1) / 2.0);
  const amount of{static_cast<double>(length * kv_columns * 2 * sizeof(float)),
                  4.0 * seen * static_cast<double>(columns)};
  measure(b,
          fmt::format("attention {} heads of {} on {}, {} rows at {}",
                      h.count,
                      h.head_dim,
                      h.kv_heads,
                      count,
                      position),
          bound::multiply,
          of,
          [&] {
            b.on.attention(
              *cache, call, step, {queries.data(), count, columns}, {out.data(), count, columns});
          });
}

} // namespace

int main(int count, char** arguments) {
  const std::size_t threads = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1;
  const double seconds = count > 2 ? std::strtod(arguments[2], nullptr) : 0.5;
  const device_options options{.threads = threads, .cores = {}};
  const auto figures = take(
    cpu::measure_machine(options,
                         {.duration = std::chrono::milliseconds(static_cast<int>(seconds * 4000)),
                          .read_region = working_set}));
  auto probe = take(cpu::machine_probe::make(options, working_set));
  const auto on = take(make_device("cpu", options));
  fmt::print("{{\"device\": \"{}\", \"read_region\": {}, \"best_read_gb_per_s\": {:.2f}, "
             "\"median_read_gb_per_s\": {:.2f}, \"best_gflops\": {:.1f}, "
             "\"median_gflops\": {:.1f}}}\n",
             on->describe(),
             working_set,
             figures.best_read_bytes_per_second * 1e-9,
             figures.read_bytes_per_second * 1e-9,
             figures.best_flops_per_second * 1e-9,
             figures.flops_per_second * 1e-9);
  const bench b{.on = *on, .probe = probe, .seconds = seconds};
  for (auto held : {dtype::bf16, dtype::f16, dtype::f32, dtype::int8, dtype::int4})
    for (auto [columns, rows] : {std::pair{768, 2048}, {2048, 5632}, {5632, 2048}, {2048, 32000}})
      bench_matmul(b, held, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  for (const heads h : {heads{12, 4, 64}, heads{32, 4, 64}, heads{32, 32, 64}})
    for (auto [position, rows] : {std::pair{511, 1}, {4095, 1}, {0, 512}, {3584, 512}})
      bench_attention(b, h, static_cast<std::size_t>(position), static_cast<std::size_t>(rows));
}
