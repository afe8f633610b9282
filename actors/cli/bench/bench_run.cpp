#include "actors/cli/bench/bench_run.hpp"

#include "actors/cli/command.hpp"
#include "actors/host/host_memory.hpp"

#include <algorithm>
#include <thread>

namespace troupe::cli {

namespace {

constexpr std::size_t read_region = std::size_t{1} << 30;
constexpr std::size_t passes = 20; ///< Of a millisecond each, for a limit.

} // namespace

double machine_limits::least_seconds(double bytes, double operations, bool whole_numbers) const {
  return std::max(bytes / read_bytes_per_s,
                  operations / (whole_numbers ? dots_per_s : flops_per_s));
}

std::size_t bench_run::threads() const {
  const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1u);
  return options_.threads != 0 ? options_.threads : cores;
}

result<void> bench_run::begin(const std::string& what) {
  progress_.show("measuring " + what);
  if (wait_for_stop_signal(std::chrono::milliseconds(0)) != 0)
    return error{errc::cancelled, "stopped"};
  return {};
}

result<compute::cpu::machine_probe*> bench_run::probe(std::size_t threads) {
  const auto found = probes_.find(threads);
  if (found != probes_.end())
    return &found->second;
  const auto spare = actors::available_memory_bytes();
  const auto region = spare == 0 ? read_region : std::min(read_region, spare / 4);
  auto made = compute::cpu::machine_probe::make({.threads = threads, .cores = {}}, region);
  if (!made)
    return made.error();
  return &probes_.emplace(threads, std::move(*made)).first->second;
}

result<machine_limits> bench_run::limits(std::size_t threads) {
  const auto on = probe(threads);
  if (!on)
    return on.error();
  machine_limits best;
  for (std::size_t i = 0; i < passes; ++i) {
    best.read_bytes_per_s = std::max(best.read_bytes_per_s, (*on)->read_rate());
    best.flops_per_s = std::max(best.flops_per_s, (*on)->flop_rate());
    best.dots_per_s = std::max(best.dots_per_s, (*on)->dot_rate());
  }
  return best;
}

bench_row row_of(std::string part, std::string what, std::string unit, std::vector<double> values) {
  bench_row row;
  row.part = std::move(part);
  row.what = std::move(what);
  row.unit = std::move(unit);
  row.found = spread_of(std::move(values));
  return row;
}

bench_row row_beside(bench_row row,
                     const std::vector<double>& values,
                     const std::vector<double>& limits,
                     std::string limited_by) {
  std::vector<double> fractions;
  for (std::size_t i = 0; i < std::min(values.size(), limits.size()); ++i)
    fractions.push_back(row.higher_is_better() ? values[i] / limits[i] : limits[i] / values[i]);
  row.found = spread_of(values);
  row.limit = median_of(limits);
  row.fraction = median_of(std::move(fractions));
  row.limited_by = std::move(limited_by);
  return row;
}

} // namespace troupe::cli
