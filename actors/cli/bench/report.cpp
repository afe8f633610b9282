#include "actors/cli/bench/report.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/text_table.hpp"
#include "actors/host/host_processor.hpp"
#include "compute/cpu/instruction_sets.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>

namespace troupe::cli {

namespace {

/// The value at `part` of the way through sorted ones, between two of them where it falls there.
double quantile(const std::vector<double>& sorted, double part) {
  const auto at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

std::string limit_text(const bench_row& row) {
  return row.limit > 0 ? three_digits(row.limit) : "-";
}

std::string fraction_text(const bench_row& row) {
  return row.fraction > 0 ? fmt::format("{:.2f}", row.fraction) : "-";
}

/// Half of the distance between the quartiles, in hundredths of the median.
std::string noise_text(const bench_row& row) {
  if (row.found.count < 2 || row.found.median <= 0)
    return "-";
  const auto half = (row.found.high - row.found.low) / 2 / row.found.median;
  return fmt::format("{:.1f} %", half * 100);
}

/// The parts of a report, in the order in which they come.
std::vector<std::string> parts_of(const bench_report& report) {
  std::vector<std::string> parts;
  for (const auto& row : report.rows)
    if (std::find(parts.begin(), parts.end(), row.part) == parts.end())
      parts.push_back(row.part);
  return parts;
}

} // namespace

spread spread_of(std::vector<double> values) {
  if (values.empty())
    return {};
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75), values.size()};
}

double median_of(std::vector<double> values) {
  return spread_of(std::move(values)).median;
}

bool bench_row::higher_is_better() const {
  return unit.ends_with("/s");
}

host_description describe_host() {
  utsname system{};
  ::uname(&system);
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page_bytes = ::sysconf(_SC_PAGE_SIZE);
  return {.cpu = actors::processor_name(),
          .system = fmt::format("{} {}", system.sysname, system.release),
          .instruction_set = compute::cpu::instruction_set(),
          .ucx = transport::ucx_version(),
          .cores = std::max(std::thread::hardware_concurrency(), 1u),
          .memory_bytes = static_cast<std::uint64_t>(std::max(pages, 0l))
                          * static_cast<std::uint64_t>(std::max(page_bytes, 0l))};
}

const bench_row* bench_report::find(std::string_view part, std::string_view what) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const bench_row& row) {
    return row.part == part && row.what == what;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string three_digits(double value) {
  const auto size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string bench_text(const bench_report& report) {
  const auto& host = report.host;
  auto text = fmt::format("{}, {}, {}; {}; {}; UCX {}\n",
                          host.cpu,
                          counted(host.cores, "core"),
                          bytes_text(host.memory_bytes),
                          host.instruction_set,
                          host.system,
                          host.ucx);
  if (!report.model.empty())
    text += fmt::format("model {}, held as {}\n", report.model, report.held);
  for (const auto& part : parts_of(report)) {
    text_table table({{part},
                      {"measured", text_table::side::right},
                      {"", text_table::side::left},
                      {"+-", text_table::side::right},
                      {"limit", text_table::side::right},
                      {"of it", text_table::side::right},
                      {"limited by"}});
    for (const auto& row : report.rows)
      if (row.part == part)
        table.add({row.what,
                   three_digits(row.found.median),
                   row.unit,
                   noise_text(row),
                   limit_text(row),
                   fraction_text(row),
                   row.limited_by});
    text += "\n" + table.text();
  }
  return text;
}

std::string bench_markdown(const bench_report& report, std::string_view part) {
  std::string text;
  for (const auto& row : report.rows) {
    if (row.part != part)
      continue;
    if (text.empty())
      text = "| what | measured | +- | limit | of it | limited by |\n|---|---|---|---|---|---|\n";
    text += fmt::format("| {} | {} {} | {} | {} | {} | {} |\n",
                        row.what,
                        three_digits(row.found.median),
                        row.unit,
                        noise_text(row),
                        limit_text(row),
                        fraction_text(row),
                        row.limited_by.empty() ? "-" : row.limited_by);
  }
  return text;
}

} // namespace troupe::cli
