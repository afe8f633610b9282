#pragma once
// Two reports of `troupe bench`, before and after: what moved, and whether that is more than noise.

#include "actors/cli/bench/report.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// What became of one row.
struct bench_change {
  enum class verdict { same, better, worse };

  const bench_row* before = nullptr;
  const bench_row* after = nullptr;
  double by = 0; ///< Relative change of the median: 0.1 = a tenth more.
  verdict is = verdict::same;
};

struct bench_comparison {
  std::vector<bench_change> changes;      ///< Worse ones first, then better ones, largest first.
  std::vector<const bench_row*> only_old; ///< Rows that are not in the other report.
  std::vector<const bench_row*> only_new;
  std::vector<std::string> differences; ///< Of hosts, versions and models, for people.

  bool has_worse() const;
};

/// A row moved where the spreads of both (quartile to quartile) are apart and the medians differ by
/// 2 % or more. A row that was measured once counts as known to 10 %. The reports outlive the
/// answer.
bench_comparison compare(const bench_report& before, const bench_report& after);

/// What moved as a table, and how many did not.
std::string comparison_text(const bench_comparison& found);

/// One JSON object.
std::string comparison_json(const bench_comparison& found);

} // namespace troupe::cli
