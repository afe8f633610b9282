#pragma once
// What `troupe bench` found: rows of a table, each with what it is compared with. Written as JSON,
// read again, shown as a table, compared with another.

#include "config/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Several measures of the same: the middle one, and the quartiles around it.
struct spread {
  double median = 0;
  double low = 0;  ///< First quartile.
  double high = 0; ///< Third quartile.
  std::size_t count = 0;
};

/// Zeros where there are none.
spread spread_of(std::vector<double> values);

/// The median alone.
double median_of(std::vector<double> values);

/// One row. `part` and `what` together name it in every report.
struct bench_row {
  std::string part; ///< "machine", "kernels" ...
  std::string what; ///< "read bandwidth, 2 threads".
  std::string unit; ///< "GB/s", "Gop/s", "tokens/s"; "ns", "us", "ms", "B", "messages".
  spread found;
  std::string limited_by;  ///< In words; empty: a row that others are compared with.
  double limit = 0;        ///< In the row's unit, measured in the same run; 0: not known.
  double fraction = 0;     ///< Of the limit that was reached, 1 = all; 0: no limit known.
  double bytes = 0;        ///< That one call, step or token must read; 0: not counted.
  double operations = 0;   ///< That it must do; 0: not counted.
  std::size_t threads = 0; ///< Of all processes together; 0: not asked.

  /// Whether more is better; otherwise it is a time, or what was moved.
  bool higher_is_better() const;
};

struct host_description {
  std::string cpu;
  std::string system; ///< Kernel and release.
  std::string instruction_set;
  std::string ucx;
  std::size_t cores = 0;
  std::uint64_t memory_bytes = 0;
};

/// This host, as a process sees it.
host_description describe_host();

struct bench_report {
  std::string version;  ///< Of the program.
  std::string measured; ///< When: "2026-11-30T20:31:00Z".
  std::string model;    ///< Folder or shape; empty: without one.
  std::string held;     ///< Element type of its weights.
  host_description host;
  std::vector<bench_row> rows;

  const bench_row* find(std::string_view part, std::string_view what) const;
};

/// One document, with two blanks a level.
std::string bench_json(const bench_report& report);

/// Reads such a document. `name` is the file, for errors, which name line or field, what was found
/// and what would work: invalid_model.
result<bench_report> parse_bench_json(const std::string& text, const std::string& name);

/// The same from a file; also not_found.
result<bench_report> read_bench_json(const std::filesystem::path& file);

/// Tables, one a part.
std::string bench_text(const bench_report& report);

/// The table of one part for a page in Markdown; empty where the report has no such row.
std::string bench_markdown(const bench_report& report, std::string_view part);

/// "12.3", three digits, more before the point where there are more.
std::string three_digits(double value);

/// The machine's roofs, and the kernels as points below them: what they do a second, over what they
/// do with each byte. Empty without bandwidth and peak.
std::string roofline_svg(const bench_report& report);

/// Tokens a second of each way to run one model, for one stream and eight. Empty without such rows.
std::string scaling_svg(const bench_report& report);

} // namespace troupe::cli
