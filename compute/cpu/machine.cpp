#include "compute/cpu/machine.hpp"

#include "compute/cpu/execution.hpp"

#include <algorithm>
#include <numeric>

#include "compute/cpu/simd_targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/machine.cpp"
#include <hwy/foreach_target.h>

#include "compute/cpu/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();

namespace troupe::compute::cpu::HWY_NAMESPACE {

/// Reads everything once, in order; the answer keeps the compiler from leaving it out.
float read_all(const float* from, std::size_t count) {
  const lanes d;
  constexpr std::size_t streams = 8;
  constexpr std::size_t step = streams * lane_count;
  vector sum[streams];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < streams; ++v)
    sum[v] = hn::Zero(d);
  for (std::size_t i = 0; i + step <= count; i += step) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < streams; ++v) {
      hwy::Prefetch(from + i + v * lane_count + 512);
      sum[v] = hn::Add(sum[v], hn::LoadU(d, from + i + v * lane_count));
    }
  }
  auto total = sum[0];
  for (std::size_t v = 1; v < streams; ++v)
    total = hn::Add(total, sum[v]);
  return hn::GetLane(hn::SumOfLanes(d, total));
}

/// Multiply-adds in registers: as many independent chains as a tile of matmul has. Returns how many
/// floating point operations that were.
double multiply_add(std::size_t steps, float* answer) {
  const lanes d;
  constexpr std::size_t chains = tile_rows * tile_vectors;
  vector sum[chains];
#pragma GCC unroll 24
  for (std::size_t c = 0; c < chains; ++c)
    sum[c] = hn::Set(d, static_cast<float>(c));
  const auto factor = hn::Set(d, 0.999f);
  const auto term = hn::Set(d, *answer);
  for (std::size_t step = 0; step < steps; ++step)
#pragma GCC unroll 24
    for (std::size_t c = 0; c < chains; ++c)
      sum[c] = hn::MulAdd(sum[c], factor, term);
  for (std::size_t c = 1; c < chains; ++c)
    sum[0] = hn::Add(sum[0], sum[c]);
  *answer = hn::GetLane(hn::SumOfLanes(d, sum[0]));
  return 2.0 * static_cast<double>(steps * chains * lane_count);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);

namespace {

using steady = std::chrono::steady_clock;

/// Amount per second of the best of the passes that fit the duration; pass() gives the amount.
template <class Pass>
double best_rate(std::chrono::milliseconds duration, const Pass& pass) {
  double best = 0.0;
  const auto end = steady::now() + duration;
  do {
    const auto start = steady::now();
    const double amount = pass();
    const std::chrono::duration<double> taken = steady::now() - start;
    best = std::max(best, amount / taken.count());
  } while (steady::now() < end);
  return best;
}

} // namespace

result<machine_figures> measure_machine(const device_options& threads,
                                        const measure_options& options) {
  auto team = thread_team::start(threads);
  if (!team)
    return team.error();
  auto region = map_memory(options.read_region, "the region for measuring the read bandwidth");
  if (!region)
    return region.error();
  const auto values = region->as<float>();
  const auto size = (*team)->size();
  std::vector<float> answers(size * 16, 1e-3f); // One cache line a thread.
  (*team)->run([&](std::size_t thread) {
    const auto share = split_part(values.size(), size, thread);
    std::fill(values.begin() + share.begin, values.begin() + share.end, 1e-3f);
  });
  machine_figures figures{.threads = size, .read_region = region->size()};
  figures.read_bytes_per_second = best_rate(options.duration, [&] {
    (*team)->run([&](std::size_t thread) {
      const auto share = split_part(values.size(), size, thread);
      answers[thread * 16] =
        HWY_DYNAMIC_DISPATCH(read_all)(values.data() + share.begin, share.size());
    });
    return static_cast<double>(region->size());
  });
  std::vector<double> done(size * 8, 0.0);
  figures.flops_per_second = best_rate(options.duration, [&] {
    (*team)->run([&](std::size_t thread) {
      done[thread * 8] = HWY_DYNAMIC_DISPATCH(multiply_add)(1 << 18, &answers[thread * 16]);
    });
    return std::accumulate(done.begin(), done.end(), 0.0);
  });
  return figures;
}

} // namespace troupe::compute::cpu

#endif
