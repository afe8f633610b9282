#include "compute/cpu/machine.hpp"

#include <algorithm>
#include <ctime>
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
      fetch_stream{}.beside<lane_count * sizeof(float)>(
        reinterpret_cast<const std::byte*>(from + i + v * lane_count), 0);
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

constexpr std::size_t read_at_once = std::size_t{4} << 20; // Floats of all threads.
constexpr std::size_t steps_at_once = std::size_t{1} << 17;

/// Rates of passes until the time is over, ascending.
template <class Pass>
std::vector<double> sorted_rates(std::chrono::milliseconds duration, const Pass& pass) {
  std::vector<double> rates;
  const auto end = steady::now() + duration;
  do
    rates.push_back(pass());
  while (steady::now() < end);
  std::sort(rates.begin(), rates.end());
  return rates;
}

} // namespace

result<machine_probe> machine_probe::make(const device_options& threads, std::size_t read_region) {
  auto team = thread_team::start(threads);
  if (!team)
    return team.error();
  auto region = map_memory(read_region, "the region for measuring the read bandwidth");
  if (!region)
    return region.error();
  const auto values = region->as<float>();
  auto on = std::make_unique<execution>(std::move(*team));
  on->run(values.size(), [&](std::size_t thread, std::size_t count) {
    const auto share = split_part(values.size(), count, thread);
    std::fill(values.begin() + share.begin, values.begin() + share.end, 1e-3f);
  });
  return machine_probe(std::move(on), std::move(*region));
}

double machine_probe::now() const {
  timespec time{};
  clock_gettime(threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double machine_probe::read_rate() {
  const auto values = region_.as<float>();
  const auto count = std::min(read_at_once, values.size());
  if (next_ + count > values.size())
    next_ = 0;
  const auto start = now();
  on_->run(count, [&](std::size_t thread, std::size_t members) {
    const auto share = split_part(count, members, thread);
    answers_[thread * 16] =
      HWY_DYNAMIC_DISPATCH(read_all)(values.data() + next_ + share.begin, share.size());
  });
  next_ += count;
  return static_cast<double>(count * sizeof(float)) / (now() - start);
}

double machine_probe::flop_rate() {
  std::vector<double> done(threads() * 8, 0.0); // A cache line a thread.
  const auto start = now();
  on_->run(steps_at_once, [&](std::size_t thread, std::size_t) {
    done[thread * 8] = HWY_DYNAMIC_DISPATCH(multiply_add)(steps_at_once, &answers_[thread * 16]);
  });
  return std::accumulate(done.begin(), done.end(), 0.0) / (now() - start);
}

result<machine_figures> measure_machine(const device_options& threads,
                                        const measure_options& options) {
  auto probe = machine_probe::make(threads, options.read_region);
  if (!probe)
    return probe.error();
  const auto reads = sorted_rates(options.duration, [&] { return probe->read_rate(); });
  const auto flops = sorted_rates(options.duration, [&] { return probe->flop_rate(); });
  return machine_figures{.threads = probe->threads(),
                         .read_bytes_per_second = reads[reads.size() / 2],
                         .flops_per_second = flops[flops.size() / 2],
                         .best_read_bytes_per_second = reads.back(),
                         .best_flops_per_second = flops.back()};
}

} // namespace troupe::compute::cpu

#endif
