// What a bench found as JSON, tables and pictures.
#include "actors/cli/bench.hpp"
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/report.hpp"
#include "tests/paths.hpp"
#include "tests/support/xml_shape.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <fstream>
#include <iterator>

using namespace troupe;
using namespace troupe::cli;
using tests::is_balanced;

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bench_row kernel(const std::string& what, double bytes, double operations, double gb_s) {
  auto row = row_beside(row_of("kernels", what, "GB/s", {}), {gb_s}, {30}, "read bandwidth");
  row.bytes = bytes;
  row.operations = operations;
  return row;
}

/// A row of each kind that pictures need, with round numbers.
bench_report some_report() {
  bench_report report;
  report.version = "0.1.0";
  report.measured = "2026-01-02T03:04:05Z";
  report.model = "<a&\"b>";
  report.held = "bf16";
  report.host = {"Some CPU", "Linux 6", "avx2", "1.13.1", 4, 8'000'000'000};
  for (const double threads : {1.0, 2.0})
    for (const auto& [what, rate] : {std::pair{"read bandwidth", 10.0},
                                     std::pair{"f32 multiply-add", 100.0},
                                     std::pair{"int8 multiply-add", 400.0}}) {
      auto row = row_of("machine",
                        what + std::string(threads == 1 ? ", 1 thread" : ", 2 threads"),
                        what == std::string("read bandwidth") ? "GB/s" : "Gop/s",
                        {rate * threads, rate * threads * 1.1});
      row.threads = static_cast<std::size_t>(threads);
      report.rows.push_back(row);
    }
  report.rows.push_back(kernel("products of a layer, bf16, 1 row", 2, 2, 15));
  report.rows.push_back(kernel("products of a layer, int4, 8 rows", 1, 32, 5));
  for (const auto* way : {"1 process x 1 thread", "PP 2 x 1 thread", "TP 2 x 1 thread"}) {
    auto row = row_of("cluster", std::string("decode, 1 stream, ") + way, "tokens/s", {8, 9, 10});
    row.limit = 12;
    row.fraction = 0.75;
    report.rows.push_back(row);
  }
  return report;
}

/// The error of a document.
std::string refusal(const std::string& text) {
  const auto read = parse_bench_json(text, "a.json");
  BOOST_REQUIRE(!read);
  BOOST_TEST((read.error().code == errc::invalid_model));
  return read.error().what;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_spread_is_the_median_between_its_quartiles) {
  const auto odd = spread_of({5, 1, 3, 2, 4});
  BOOST_TEST(odd.median == 3);
  BOOST_TEST(odd.low == 2);
  BOOST_TEST(odd.high == 4);
  BOOST_TEST(odd.count == 5u);
  const auto even = spread_of({4, 1, 2, 3});
  BOOST_TEST(even.median == 2.5);
  BOOST_TEST(even.low == 1.75);
  BOOST_TEST(spread_of({7}).high == 7);
  BOOST_TEST(spread_of({}).count == 0u);
}

BOOST_AUTO_TEST_CASE(a_fraction_is_that_of_turns_taken_one_after_the_other) {
  // The machine was half as fast in the second turn, for both.
  const auto rate = row_beside(row_of("p", "w", "GB/s", {}), {8, 4, 8}, {10, 5, 10}, "it");
  BOOST_TEST(std::abs(rate.fraction - 0.8) < 1e-12);
  BOOST_TEST(rate.found.median == 8);
  BOOST_TEST(rate.limit == 10);
  // A time reaches its limit from above.
  const auto time = row_beside(row_of("p", "w", "us", {}), {4, 4}, {1, 1}, "it");
  BOOST_TEST(time.fraction == 0.25);
  BOOST_TEST(!time.higher_is_better());
}

BOOST_AUTO_TEST_CASE(a_report_is_read_as_it_was_written) {
  const auto before = some_report();
  const auto text = bench_json(before);
  const auto after = parse_bench_json(text, "a.json");
  BOOST_REQUIRE_MESSAGE(after, (after ? "" : after.error().what));
  BOOST_TEST(bench_json(*after) == text);
  BOOST_REQUIRE(after->rows.size() == before.rows.size());
  BOOST_TEST(after->host.memory_bytes == before.host.memory_bytes);
  BOOST_TEST(after->rows.back().limit == 12);
  BOOST_TEST(after->find("machine", "read bandwidth, 2 threads")->found.count == 2u);
  BOOST_TEST(after->find("machine", "nothing") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_document_that_is_no_report_is_refused_by_place_and_field) {
  const auto text = bench_json(some_report());
  BOOST_TEST(holds(refusal("{\n  \"format\": ]"), "a.json: line 2, column 13"));
  BOOST_TEST(holds(refusal(""), "a.json: line 1"));
  BOOST_TEST(holds(refusal("[]"), "the document: found []; an object would work"));
  BOOST_TEST(holds(refusal("{}"), "format: it is missing"));
  BOOST_TEST(
    holds(refusal(R"({"format": "else 2"})"), "found \"else 2\"; \"troupe bench 1\" would work"));
  BOOST_TEST(holds(refusal(replaced(text, "\"cores\": 4", "\"cores\": \"four\"")),
                   "host.cores: found \"four\"; a whole number"));
  BOOST_TEST(holds(refusal(replaced(text, "\"host\"", "\"guest\"")), "host: found null"));
  BOOST_TEST(holds(refusal(replaced(text, "\"unit\": \"GB/s\"", "\"unit\": 7")),
                   "rows[0].unit: found 7; a text would work"));
  BOOST_TEST(holds(refusal(replaced(text, "\"high\"", "\"hi\"")), "rows[0].high: it is missing"));
  BOOST_TEST(holds(refusal(replaced(text, "\"rows\": [", "\"rows\": [1,")), "rows[0]: found 1"));
  const auto missing = read_bench_json("/nowhere/a.json");
  BOOST_REQUIRE(!missing);
  BOOST_TEST((missing.error().code == errc::not_found));
  BOOST_TEST(holds(missing.error().what, "/nowhere/a.json"));
}

BOOST_AUTO_TEST_CASE(a_table_shows_each_row_with_limit_fraction_and_reason) {
  const auto text = bench_text(some_report());
  BOOST_TEST(holds(text, "Some CPU, 4 cores"), text);
  BOOST_TEST(holds(text, "decode, 1 stream, PP 2 x 1 thread"), text);
  BOOST_TEST(holds(text, "0.75"), text);
  BOOST_TEST(holds(text, "read bandwidth\n"), text);
  const auto page = bench_markdown(some_report(), "cluster");
  BOOST_TEST(holds(page, "| decode, 1 stream, TP 2 x 1 thread | 9.00 tokens/s | 5.6 % | 12.0 |"),
             page);
  BOOST_TEST(bench_markdown(some_report(), "boundary").empty());
  BOOST_TEST(three_digits(1.234) == "1.23");
  BOOST_TEST(three_digits(12.34) == "12.3");
  BOOST_TEST(three_digits(1234.5) == "1234");
}

BOOST_AUTO_TEST_CASE(pictures_are_well_formed_and_say_nothing_without_their_rows) {
  const auto report = some_report();
  for (const auto& picture : {roofline_svg(report), scaling_svg(report)}) {
    BOOST_TEST(is_balanced(picture), picture);
    BOOST_TEST(!holds(picture, "nan"));
    BOOST_TEST(!holds(picture, "inf"));
    BOOST_TEST(holds(picture, "prefers-color-scheme: dark"));
  }
  BOOST_TEST(holds(roofline_svg(report), ">int4<"));
  BOOST_TEST(!holds(roofline_svg(report), ">f16<"), "only what has a point");
  BOOST_TEST(holds(roofline_svg(report), "read bandwidth: 21.0 GB/s"));
  BOOST_TEST(holds(scaling_svg(report), ">PP 2 x 1 thread<"));
  BOOST_TEST(holds(scaling_svg(report), "&lt;a&amp;&quot;b&gt;"));
  BOOST_TEST(roofline_svg({}).empty());
  BOOST_TEST(scaling_svg({}).empty());
}

BOOST_AUTO_TEST_CASE(the_page_has_a_place_for_the_table_of_each_part) {
  std::ifstream in{TROUPE_SOURCE_DIR "/docs/performance.md"};
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const auto& part : bench_parts()) {
    const auto begin = page.find("<!-- begin " + part + " -->\n");
    BOOST_TEST(begin != std::string::npos, part);
    BOOST_TEST(page.find("<!-- end " + part + " -->", begin) != std::string::npos, part);
  }
}
