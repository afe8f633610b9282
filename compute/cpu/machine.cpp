#include "compute/cpu/machine.hpp"
#include "compute/cpu/instruction_sets.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <numeric>
#include <optional>
#include <sched.h>
#include <thread>

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

using words = hn::RebindToSigned<lanes>;
using word_vector = hn::Vec<words>;

/// sum += the four 8-bit products in each lane, by the fastest instructions that there are; pairs
/// may saturate, which a yardstick does not mind. By name, since the compiler would compute what
/// never changes once.
HWY_INLINE word_vector add_byte_products(word_vector sum,
                                         word_vector a,
                                         word_vector b,
                                         [[maybe_unused]] bool in_one) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#if HWY_TARGET == HWY_AVX3
  if (in_one) {
    asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#endif
  word_vector products;
  asm volatile("vpmaddubsw %2, %1, %0" : "=v"(products.raw) : "v"(a.raw), "v"(b.raw));
  asm volatile("vpmaddwd %1, %0, %0" : "+v"(products.raw) : "v"(a.raw));
  return hn::Add(sum, products);
#else
  const words d;
  const auto byte = hn::Set(d, 0xff);
  const auto product = [&](word_vector codes, word_vector signed_codes) {
    return hn::Mul(hn::And(codes, byte), hn::ShiftRight<24>(signed_codes));
  };
  b = hn::Add(b, sum);
  sum = hn::Add(sum, product(a, hn::ShiftLeft<24>(b)));
  sum = hn::Add(sum, product(hn::ShiftRight<8>(a), hn::ShiftLeft<16>(b)));
  sum = hn::Add(sum, product(hn::ShiftRight<16>(a), hn::ShiftLeft<8>(b)));
  return hn::Add(sum, product(hn::ShiftRight<24>(a), b));
#endif
}

/// Whole-number multiply-adds in registers. Returns how many operations that were.
double multiply_add_bytes(std::size_t steps, bool in_one, float* answer) {
  const words d;
  constexpr std::size_t chains = tile_rows * tile_vectors;
  word_vector sum[chains];
#pragma GCC unroll 24
  for (std::size_t c = 0; c < chains; ++c)
    sum[c] = hn::Set(d, static_cast<std::int32_t>(c));
  const auto codes = hn::Set(d, static_cast<std::int32_t>(*answer * 1e6f) | 0x01010101);
  for (std::size_t step = 0; step < steps; ++step)
#pragma GCC unroll 24
    for (std::size_t c = 0; c < chains; ++c)
      sum[c] = add_byte_products(sum[c], codes, codes, in_one);
  for (std::size_t c = 1; c < chains; ++c)
    sum[0] = hn::Add(sum[0], sum[c]);
  *answer = static_cast<float>(hn::GetLane(hn::SumOfLanes(d, sum[0])) & 0xff) * 1e-6f;
  return 8.0 * static_cast<double>(steps * chains * lane_count);
}

} // namespace troupe::compute::cpu::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace troupe::compute::cpu {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);
HWY_EXPORT(multiply_add_bytes);

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

double machine_probe::dot_rate() {
  std::vector<double> done(threads() * 8, 0.0);
  const bool in_one = has_dot_products();
  const auto start = now();
  on_->run(steps_at_once, [&](std::size_t thread, std::size_t) {
    done[thread * 8] =
      HWY_DYNAMIC_DISPATCH(multiply_add_bytes)(steps_at_once / 2, in_one, &answers_[thread * 16]);
  });
  return std::accumulate(done.begin(), done.end(), 0.0) / (now() - start);
}

namespace {

constexpr std::uint32_t turns_at_once = 1000;
constexpr std::uint32_t patience = 1u << 22; // Looks at the line; some 10 ms.

/// The first two cores that this process may use.
std::optional<std::array<unsigned, 2>> first_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return std::nullopt;
  std::array<unsigned, 2> found{};
  std::size_t count = 0;
  for (unsigned core = 0; core < CPU_SETSIZE && count < 2; ++core)
    if (CPU_ISSET(core, &allowed))
      found[count++] = core;
  return count == 2 ? std::optional{found} : std::nullopt;
}

void pin(unsigned core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  [[maybe_unused]] const auto ignored = ::sched_setaffinity(0, sizeof only, &only);
}

/// Waits for `wanted`; false when it does not come: the other thread has no core now.
bool await(const std::atomic<std::uint32_t>& line, std::uint32_t wanted) {
  for (std::uint32_t looks = 0; looks < patience; ++looks)
    if (line.load(std::memory_order_acquire) == wanted)
      return true;
  return false;
}

} // namespace

std::vector<double> measure_ping_pong(std::chrono::milliseconds duration) {
  const auto cores = first_cores();
  if (!cores)
    return {};
  alignas(64) std::atomic<std::uint32_t> line = 0;
  alignas(64) std::atomic<bool> done = false;
  std::thread other([&] {
    pin((*cores)[1]);
    for (std::uint32_t turn = 1; !done.load(std::memory_order_relaxed);)
      if (await(line, turn)) {
        line.store(turn + 1, std::memory_order_release);
        turn += 2;
      }
  });
  std::vector<double> found;
  std::thread leader([&] {
    pin((*cores)[0]);
    const auto end = steady::now() + duration;
    std::uint32_t turn = 0;
    while (steady::now() < end) {
      const auto start = steady::now();
      for (std::uint32_t i = 0; i < turns_at_once; ++i, turn += 2) {
        line.store(turn + 1, std::memory_order_release);
        while (!await(line, turn + 2) && steady::now() < end) {
        }
      }
      const std::chrono::duration<double> taken = steady::now() - start;
      found.push_back(taken.count() / (2.0 * turns_at_once));
    }
    done = true;
  });
  leader.join();
  other.join();
  if (found.size() > 1)
    found.pop_back(); // The time was over in the middle of it.
  return found;
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
