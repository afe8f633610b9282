// instruction_driver: runs each kernel of the CPU device alone, for valgrind to count its
// instructions (instruction_test.cpp). One thread, fixed sizes, AVX2: the counts depend on source
// and compiler, not on the machine. Each kernel is counted twice after one call that is not.
//
//   valgrind --tool=callgrind --instr-atstart=no instruction_driver
//
// Prints "compiler <tab> name, version and build type", then a line a kernel, "operations <tab>
// name".

#include "compute/batch.hpp"
#include "compute/cpu/half.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "compute/device.hpp"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
// Without the header nothing is counted, and the test says so.
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

using namespace troupe;
using namespace troupe::compute;

namespace {

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 numbers(1);
  std::vector<float> values(count);
  for (auto& value : values)
    value = static_cast<float>(numbers() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

/// Counts one kernel, twice, under its name.
void count(const std::string& name, double operations, const std::function<void()>& call) {
  fmt::print("{:.0f}\t{}\n", operations, name);
  call(); // Takes working memory, and touches all of it.
  for (int time = 0; time < 2; ++time) {
    CALLGRIND_ZERO_STATS;
    CALLGRIND_START_INSTRUMENTATION;
    call();
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(name.c_str());
  }
}

void count_matmul(device& on, dtype held, std::size_t m) {
  constexpr std::size_t rows = 512, columns = 512;
  const auto values = random_floats(rows * columns);
  const auto weights =
    on.pack(weight_source{.data = reinterpret_cast<const std::byte*>(values.data()),
                          .stored = dtype::f32,
                          .rows = rows,
                          .columns = columns,
                          .stride = columns,
                          .owner = nullptr},
            held);
  check(weights.has_value(), "a weight is packed");
  auto x = random_floats(m * columns);
  std::vector<float> out(m * rows);
  count(fmt::format("matmul {}, m {}", to_string(held), m),
        2.0 * static_cast<double>(m * rows * columns),
        [&] {
          on.matmul(**weights, {x.data(), m, columns}, {}, {out.data(), m, rows}, {});
        });
}

/// What a weight of bf16 costs at load, an element an operation.
void count_packing(device& on, dtype held) {
  constexpr std::size_t rows = 512, columns = 512;
  const auto values = random_floats(rows * columns);
  std::vector<cpu::bf16> stored;
  for (const auto value : values)
    stored.push_back(cpu::from_float<cpu::bf16>(value));
  count(fmt::format("pack {}", to_string(held)), static_cast<double>(stored.size()), [&] {
    const auto made =
      on.pack(weight_source{.data = reinterpret_cast<const std::byte*>(stored.data()),
                            .stored = dtype::bf16,
                            .rows = rows,
                            .columns = columns,
                            .stride = columns,
                            .owner = nullptr},
              held);
    check(made.has_value(), "a weight is packed");
  });
}

/// `m` new rows of one sequence at `position`.
void count_attention(device& on, std::size_t position, std::size_t m) {
  constexpr std::size_t heads = 8, kv_heads = 2, head_dim = 64;
  const auto length = position + m;
  const auto cache = on.make_kv_cache(
    {.layers = 1, .kv_heads = kv_heads, .head_dim = head_dim, .pages = pages_for(length)});
  check(cache.has_value(), "a state is made");
  sequence_rows rows;
  rows.count = static_cast<std::uint32_t>(length);
  for (std::size_t page = 0; page < pages_for(length); ++page)
    rows.pages.push_back(static_cast<page_id>(page));
  auto kept = random_floats(length * kv_heads * head_dim);
  const tensor state{kept.data(), length, kv_heads * head_dim};
  on.store_kv(**cache, 0, {{rows}}, state, state);
  rows.position = static_cast<std::uint32_t>(position);
  rows.count = static_cast<std::uint32_t>(m);
  const std::vector<std::uint32_t> kv_head_of{0, 0, 0, 0, 1, 1, 1, 1};
  const attention_call call{.layer = 0,
                            .heads = heads,
                            .kv_heads = kv_heads,
                            .head_dim = head_dim,
                            .scale = 0.125f,
                            .window = 0,
                            .kv_head_of = kv_head_of};
  auto queries = random_floats(m * heads * head_dim);
  std::vector<float> out(queries.size());
  const batch step{{rows}};
  const auto seen =
    static_cast<double>(m) * (static_cast<double>(position) + (static_cast<double>(m) + 1) / 2);
  count(fmt::format("attention, m {} at {}", m, position),
        4.0 * seen * static_cast<double>(heads * head_dim),
        [&] {
          on.attention(**cache,
                       call,
                       step,
                       {queries.data(), m, heads * head_dim},
                       {out.data(), m, heads * head_dim});
        });
}

/// What works on each element alone; an operation is an element.
void count_elements(device& on) {
  constexpr std::size_t m = 16, n = 2048, head_dim = 64;
  auto x = random_floats(m * n);
  auto y = x;
  const auto weight = random_floats(n);
  const tensor in{x.data(), m, n}, out{y.data(), m, n};
  const auto elements = static_cast<double>(m * n);
  count("rms_norm", elements, [&] { on.rms_norm(in, weight, 1e-5f, out); });
  count("head_norm", elements, [&] {
    on.head_norm(out, head_dim, std::span(weight).first(head_dim), 1e-5f);
  });
  rope_table table;
  for (std::size_t i = 0; i < head_dim / 2; ++i)
    table.inverse_frequencies.push_back(
      std::pow(10'000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(head_dim)));
  sequence_rows rows;
  rows.count = m;
  rows.pages = {page_id{0}};
  const batch step{{rows}};
  count("rope", elements, [&] { on.rope(out, head_dim, table, step); });
  count("silu_mul", elements, [&] { on.silu_mul(in, in, out); });
  count("add", elements, [&] { on.add(in, out); });
}

} // namespace

int main() {
  if (auto used = cpu::use_instruction_set("avx2"); !used) {
    fmt::print(stderr, "instruction_driver: {}\n", used.error().what);
    return 3;
  }
  const auto on = make_device("cpu", {.threads = 1, .cores = {}});
  if (!on) {
    fmt::print(stderr, "instruction_driver: {}\n", on.error().what);
    return 1;
  }
  fmt::print("compiler\t{} {}, {}\n", TROUPE_COMPILER, __VERSION__, TROUPE_BUILD_TYPE);
  for (const auto held : {dtype::f32, dtype::bf16, dtype::f16, dtype::int8, dtype::int4})
    for (const std::size_t m : {1, 64})
      count_matmul(**on, held, m);
  for (const auto held : {dtype::f32, dtype::bf16, dtype::f16, dtype::int8, dtype::int4})
    count_packing(**on, held);
  count_attention(**on, 511, 1);
  count_attention(**on, 0, 64);
  count_elements(**on);
  return 0;
}
