#include "actors/cli/bench/compare.hpp"

#include "actors/cli/command.hpp"
#include "actors/cli/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace troupe::cli {

namespace {

using verdict = bench_change::verdict;

constexpr double least_change = 0.02;
constexpr double error_of_one = 0.1;

/// The spread that a row is believed to have.
spread believed(const spread& found) {
  if (found.count >= 2)
    return found;
  return {found.median,
          found.median * (1 - error_of_one),
          found.median * (1 + error_of_one),
          found.count};
}

bench_change change_of(const bench_row& before, const bench_row& after) {
  bench_change made{&before, &after};
  const auto old = believed(before.found);
  const auto now = believed(after.found);
  if (old.median <= 0)
    return made;
  made.by = now.median / old.median - 1;
  const bool apart = now.low > old.high || now.high < old.low;
  if (apart && std::abs(made.by) >= least_change)
    made.is = (made.by > 0) == before.higher_is_better() ? verdict::better : verdict::worse;
  return made;
}

int order_of(verdict is) {
  return is == verdict::worse ? 0 : is == verdict::better ? 1 : 2;
}

void note_difference(std::vector<std::string>& into,
                     const std::string& what,
                     const std::string& before,
                     const std::string& after) {
  if (before != after)
    into.push_back(fmt::format("{}: {} before, {} now", what, before, after));
}

std::vector<std::string> differences_of(const bench_report& before, const bench_report& after) {
  std::vector<std::string> found;
  note_difference(found, "processor", before.host.cpu, after.host.cpu);
  note_difference(
    found, "cores", std::to_string(before.host.cores), std::to_string(after.host.cores));
  note_difference(found, "system", before.host.system, after.host.system);
  note_difference(
    found, "instruction set", before.host.instruction_set, after.host.instruction_set);
  note_difference(found, "UCX", before.host.ucx, after.host.ucx);
  note_difference(found, "model", before.model, after.model);
  note_difference(found, "held as", before.held, after.held);
  return found;
}

} // namespace

bool bench_comparison::has_worse() const {
  return std::any_of(changes.begin(), changes.end(), [](const bench_change& change) {
    return change.is == verdict::worse;
  });
}

bench_comparison compare(const bench_report& before, const bench_report& after) {
  bench_comparison made;
  for (const auto& row : before.rows) {
    const auto* same = after.find(row.part, row.what);
    if (same != nullptr && same->unit == row.unit)
      made.changes.push_back(change_of(row, *same));
    else
      made.only_old.push_back(&row);
  }
  for (const auto& row : after.rows) {
    const auto* same = before.find(row.part, row.what);
    if (same == nullptr || same->unit != row.unit)
      made.only_new.push_back(&row);
  }
  std::stable_sort(made.changes.begin(), made.changes.end(), [](const auto& a, const auto& b) {
    if (order_of(a.is) != order_of(b.is))
      return order_of(a.is) < order_of(b.is);
    return std::abs(a.by) > std::abs(b.by);
  });
  made.differences = differences_of(before, after);
  return made;
}

std::string comparison_text(const bench_comparison& found) {
  std::string text;
  for (const auto& difference : found.differences)
    text += "not alike: " + difference + "\n";
  text_table table({{""},
                    {"part"},
                    {"what"},
                    {"before", text_table::side::right},
                    {"now", text_table::side::right},
                    {""},
                    {"change", text_table::side::right}});
  std::size_t moved = 0;
  for (const auto& change : found.changes) {
    if (change.is == verdict::same)
      continue;
    ++moved;
    table.add({change.is == verdict::worse ? "worse" : "better",
               change.before->part,
               change.before->what,
               three_digits(change.before->found.median),
               three_digits(change.after->found.median),
               change.before->unit,
               fmt::format("{:+.1f} %", change.by * 100)});
  }
  if (moved > 0)
    text += table.text();
  text += fmt::format(
    "{} moved beyond noise, {} did not", counted(moved, "row"), found.changes.size() - moved);
  if (!found.only_old.empty() || !found.only_new.empty())
    text += fmt::format("; {} only before, {} only now",
                        counted(found.only_old.size(), "row"),
                        found.only_new.size());
  return text + "\n";
}

} // namespace troupe::cli
