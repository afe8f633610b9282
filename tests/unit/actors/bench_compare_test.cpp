// Two reports of a bench: what moved, and what is only noise.
#include "actors/cli/bench/compare.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace troupe;
using namespace troupe::cli;
using verdict = bench_change::verdict;

namespace {

bench_row row(const std::string& what, spread found, const std::string& unit = "GB/s") {
  bench_row made;
  made.part = "kernels";
  made.what = what;
  made.unit = unit;
  made.found = found;
  return made;
}

bench_report report(std::vector<bench_row> rows) {
  bench_report made;
  made.rows = std::move(rows);
  return made;
}

verdict verdict_of(spread before, spread after, const std::string& unit = "GB/s") {
  const auto old = report({row("x", before, unit)});
  const auto now = report({row("x", after, unit)});
  const auto found = compare(old, now);
  BOOST_REQUIRE(found.changes.size() == 1u);
  BOOST_TEST(found.has_worse() == (found.changes[0].is == verdict::worse));
  return found.changes[0].is;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_row_moved_where_both_spreads_are_apart) {
  BOOST_TEST((verdict_of({10, 9.8, 10.2, 9}, {12, 11.8, 12.2, 9}) == verdict::better));
  BOOST_TEST((verdict_of({10, 9.8, 10.2, 9}, {8, 7.8, 8.2, 9}) == verdict::worse));
  BOOST_TEST((verdict_of({10, 8, 12, 9}, {11, 9, 13, 9}) == verdict::same), "they overlap");
  BOOST_TEST((verdict_of({10, 8, 10.1, 9}, {11, 10.2, 13, 9}) == verdict::better));
}

BOOST_AUTO_TEST_CASE(less_time_is_better) {
  BOOST_TEST((verdict_of({10, 9, 11, 9}, {8, 7, 8.5, 9}, "us") == verdict::better));
  BOOST_TEST((verdict_of({10, 9, 11, 9}, {20, 19, 21, 9}, "ms") == verdict::worse));
}

BOOST_AUTO_TEST_CASE(one_percent_is_no_change_however_still_the_machine_was) {
  BOOST_TEST((verdict_of({100, 99.9, 100.1, 9}, {101, 100.9, 101.1, 9}) == verdict::same));
  BOOST_TEST((verdict_of({100, 99.9, 100.1, 9}, {97, 96.9, 97.1, 9}) == verdict::worse));
}

BOOST_AUTO_TEST_CASE(what_was_measured_once_is_known_to_a_tenth) {
  BOOST_TEST((verdict_of({10, 10, 10, 1}, {11.5, 11.5, 11.5, 1}) == verdict::same));
  BOOST_TEST((verdict_of({10, 10, 10, 1}, {13, 13, 13, 1}) == verdict::better));
  BOOST_TEST((verdict_of({0, 0, 0, 0}, {13, 13, 13, 1}) == verdict::same), "nothing to go by");
}

BOOST_AUTO_TEST_CASE(changes_come_worst_first_and_say_by_how_much) {
  const auto old = report({row("a", {10, 9.9, 10.1, 9}),
                           row("b", {10, 9.9, 10.1, 9}),
                           row("c", {10, 9.9, 10.1, 9}),
                           row("d", {10, 9.9, 10.1, 9}),
                           row("gone", {1, 1, 1, 9}),
                           row("other unit", {1, 1, 1, 9})});
  const auto now = report({row("a", {20, 19, 21, 9}),
                           row("b", {9, 8.9, 9.1, 9}),
                           row("c", {10, 9.9, 10.1, 9}),
                           row("d", {5, 4.9, 5.1, 9}),
                           row("other unit", {1, 1, 1, 9}, "Gop/s")});
  const auto found = compare(old, now);
  BOOST_REQUIRE(found.changes.size() == 4u);
  BOOST_TEST(found.changes[0].before->what == "d");
  BOOST_TEST(std::abs(found.changes[0].by + 0.5) < 1e-12);
  BOOST_TEST(found.changes[1].before->what == "b");
  BOOST_TEST(found.changes[2].before->what == "a");
  BOOST_TEST((found.changes[3].is == verdict::same));
  BOOST_TEST(found.only_old.size() == 2u);
  BOOST_TEST(found.only_new.size() == 1u);
  const auto text = comparison_text(found);
  BOOST_TEST(holds(text, "-50.0 %"), text);
  BOOST_TEST(holds(text, "+100.0 %"), text);
  BOOST_TEST(holds(text, "3 rows moved beyond noise, 1 did not; 2 rows only before, 1 only now"),
             text);
  const auto json = comparison_json(found);
  BOOST_TEST(holds(json, "\"worse\": true"), json);
  BOOST_TEST(holds(json, "\"what\": \"gone\""), json);
}

BOOST_AUTO_TEST_CASE(reports_of_unlike_hosts_say_so) {
  auto old = report({});
  auto now = old;
  BOOST_TEST(compare(old, now).differences.empty());
  now.host.cpu = "another";
  now.held = "int8";
  const auto text = comparison_text(compare(old, now));
  BOOST_TEST(holds(text, "not alike: processor: "), text);
  BOOST_TEST(holds(text, "not alike: held as: "), text);
  BOOST_TEST(holds(text, "0 rows moved"), text);
}
