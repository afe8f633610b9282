// bench_machine (actors/cli/bench/bench_run.hpp).
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/command.hpp"

#include <fmt/format.h>

#include <vector>

namespace troupe::cli {

namespace {

using steady = std::chrono::steady_clock;

/// 1, 2, 4 ... and `most` itself.
std::vector<std::size_t> thread_counts(std::size_t most) {
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count < most; count *= 2)
    counts.push_back(count);
  counts.push_back(most);
  return counts;
}

void add_rate(bench_run& run,
              const std::string& what,
              const std::string& unit,
              std::size_t threads,
              const std::vector<double>& rates) {
  auto row =
    row_of("machine", fmt::format("{}, {}", what, counted(threads, "thread")), unit, rates);
  row.threads = threads;
  run.add(std::move(row));
}

result<void> measure_threads(bench_run& run, std::size_t threads) {
  if (auto on = run.begin(fmt::format("the machine, {}", counted(threads, "thread"))); !on)
    return on;
  const auto probe = run.probe(threads);
  if (!probe)
    return probe.error();
  std::vector<double> reads, flops, dots;
  const auto end = steady::now() + 3 * run.time();
  while (reads.size() < 5 || steady::now() < end) {
    reads.push_back((*probe)->read_rate() * 1e-9);
    flops.push_back((*probe)->flop_rate() * 1e-9);
    dots.push_back((*probe)->dot_rate() * 1e-9);
  }
  add_rate(run, "read bandwidth", "GB/s", threads, reads);
  add_rate(run, "f32 multiply-add", "Gop/s", threads, flops);
  add_rate(run, "int8 multiply-add", "Gop/s", threads, dots);
  return {};
}

} // namespace

result<void> bench_machine(bench_run& run) {
  for (const auto threads : thread_counts(run.threads()))
    if (auto measured = measure_threads(run, threads); !measured)
      return measured;
  if (auto on = run.begin("a cache line between two cores"); !on)
    return on;
  auto times = compute::cpu::measure_ping_pong(
    std::chrono::duration_cast<std::chrono::milliseconds>(run.time()));
  for (auto& time : times)
    time *= 1e9;
  if (!times.empty())
    run.add(row_of("machine", "cache line from core to core", "ns", times));
  return {};
}

} // namespace troupe::cli
