#pragma once
// One run of `troupe bench`: what its parts share, and the parts. Each part adds rows to the
// report; one thread.

#include "actors/cli/bench.hpp"
#include "actors/cli/bench/report.hpp"
#include "actors/cli/progress.hpp"
#include "compute/cpu/machine.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>

namespace troupe::cli {

/// What so many threads of this machine can do at most: the best of some passes.
struct machine_limits {
  double read_bytes_per_s = 0;
  double flops_per_s = 0; ///< f32.
  double dots_per_s = 0;  ///< 8-bit whole numbers.

  /// Seconds that a piece of work takes at least, in f32 or in whole numbers.
  double least_seconds(double bytes, double operations, bool whole_numbers = false) const;
};

class bench_run {
public:
  bench_run(const bench_options& options, bench_report& report)
    : options_(options), report_(report), progress_(options.quiet) {}

  const bench_options& options() const { return options_; }

  /// As asked for, or the cores of the host.
  std::size_t threads() const;

  std::chrono::duration<double> time() const {
    return std::chrono::duration<double>(options_.seconds);
  }

  /// What is measured now, on standard error. Error: cancelled, by a stop signal.
  result<void> begin(const std::string& what);

  void add(bench_row row) { report_.rows.push_back(std::move(row)); }

  /// Probes on so many threads, made when first asked for. A probe's passes are taken turn by turn
  /// with what they are compared with.
  result<compute::cpu::machine_probe*> probe(std::size_t threads);

  /// Lets the probes' memory go.
  void forget_probes() { probes_.clear(); }

  /// Measured now: some tens of milliseconds.
  result<machine_limits> limits(std::size_t threads);

  void clear_progress() { progress_.clear(); }

private:
  const bench_options& options_;
  bench_report& report_;
  progress_line progress_;
  std::map<std::size_t, compute::cpu::machine_probe> probes_;
};

/// A row from values of one measure.
bench_row row_of(std::string part, std::string what, std::string unit, std::vector<double> values);

/// Such a row beside its limit, both from turns that were taken one after the other, in the same
/// unit; the fraction is the median of the turns'.
bench_row row_beside(bench_row row,
                     const std::vector<double>& values,
                     const std::vector<double>& limits,
                     std::string limited_by);

/// Read bandwidth, multiply-adds and the cache line between cores.
result<void> bench_machine(bench_run& run);

/// Messages between two processes: the transport beside raw UCX.
result<void> bench_transport(bench_run& run);

/// All-reduce of processes of one host. `ranks` up to process_board::most_processes.
result<void> bench_collectives(bench_run& run, unsigned ranks);

/// A tensor from actor to actor of two processes, beside raw UCX.
result<void> bench_boundary(bench_run& run);

/// Products and attention of the 1.1B shape, for each type of held weights.
result<void> bench_kernels(bench_run& run);

/// A whole model in this process, without actors.
result<void> bench_model(bench_run& run, const std::filesystem::path& folder);

/// The model in clusters of this host, as `troupe up` makes them.
result<void> bench_clusters(bench_run& run, const std::filesystem::path& folder);

} // namespace troupe::cli
