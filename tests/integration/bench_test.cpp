// `troupe bench` as people run it: the parts, the report, the pictures, the comparison.
#include "tests/support/cluster.hpp"
#include "tests/support/xml_shape.hpp"

#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

const std::string unused_file = "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n";

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<nlohmann::json> rows_of(const std::filesystem::path& report) {
  return nlohmann::json::parse(read_file(report)).at("rows");
}

/// Which of the rows measured something.
std::size_t count_rows(const std::vector<nlohmann::json>& rows, const std::string& part) {
  std::size_t count = 0;
  for (const auto& row : rows) {
    if (row.at("part") != part)
      continue;
    ++count;
    BOOST_TEST(row.at("median").get<double>() > 0, row.dump());
    BOOST_TEST(row.at("low").get<double>() <= row.at("high").get<double>(), row.dump());
    BOOST_TEST(row.at("n").get<int>() > 0, row.dump());
  }
  return count;
}

} // namespace

BOOST_AUTO_TEST_CASE(without_a_model_it_measures_the_machine_and_its_roads) {
  const cluster here{unused_file};
  const auto report = here.folder() / "report.json";
  // A minute is what a loaded machine may take; nothing of it waits for anything else.
  const auto ran =
    here.run({"bench", "--seconds", "0.05", "--output", report.string(), "--quiet"}, 60);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
  for (const auto* words : {"read bandwidth, 1 thread", "limited by", "raw UCX active messages"})
    BOOST_TEST(ran.mentions(words), ran.all());
  const auto rows = rows_of(report);
  const std::size_t cores = std::thread::hardware_concurrency();
  BOOST_TEST(count_rows(rows, "machine") >= (cores > 1 ? 7u : 3u));
  BOOST_TEST(count_rows(rows, "transport") == 8u);
  BOOST_TEST(count_rows(rows, "boundary") == 12u);
  BOOST_TEST(count_rows(rows, "collectives") == (cores >= 4 ? 8u : 4u));
  BOOST_TEST(count_rows(rows, "cluster") == 0u);
}

BOOST_AUTO_TEST_CASE(a_model_runs_in_one_process_and_in_two) {
  const cluster here{unused_file};
  const auto report = here.folder() / "report.json";
  const auto charts = here.folder() / "charts";
  const auto ran = here.run({"bench",
                             short_model().folder().string(),
                             "--only",
                             "cluster",
                             "--prompt",
                             "16",
                             "--steps",
                             "4",
                             "--repeats",
                             "1",
                             "--threads",
                             "2",
                             "--output",
                             report.string(),
                             "--svg",
                             charts.string(),
                             "--quiet"},
                            120);
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
  const auto rows = rows_of(report);
  // Four ways: a prompt, one stream and eight, the start; and what two of them move.
  BOOST_TEST(count_rows(rows, "cluster") == 4 * 4u + 2 * 2u);
  const auto value = [&](const std::string& what) {
    for (const auto& row : rows)
      if (row.at("what") == what)
        return row.at("median").get<double>();
    return -1.0;
  };
  // A row of 64 f32 and its header of 96 bytes; two sums a layer, one of the embedding, the head.
  BOOST_TEST(value("boundary bytes a token, PP 2 x 1 thread") == 64 * 4 + 96);
  BOOST_TEST(value("boundary messages a token, PP 2 x 1 thread") == 1);
  BOOST_TEST(value("collectives a token, TP 2 x 1 thread") >= 2 * 4);
  BOOST_TEST(value("collectives a token, TP 2 x 1 thread") <= 2 * 4 + 2);
  for (const auto* way :
       {"1 process x 1 thread", "1 process x 2 threads", "PP 2 x 1 thread", "TP 2 x 1 thread"})
    BOOST_TEST(ran.mentions(std::string("decode, 8 streams, ") + way), ran.all());
  BOOST_TEST(is_balanced(read_file(charts / "scaling.svg")));
  BOOST_TEST(!std::filesystem::exists(charts / "roofline.svg"), "there are no kernels to draw");
  BOOST_TEST(ran.mentions("no roofline.svg: the report lacks its rows"), ran.all());
  // What was measured is shown again without measuring.
  const auto shown = here.run({"bench", "--show", report.string()});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(shown.mentions("decode, 8 streams, PP 2 x 1 thread"), shown.all());
}

BOOST_AUTO_TEST_CASE(two_reports_are_compared_by_exit_code) {
  const cluster here{unused_file};
  const auto before = (here.folder() / "before.json").string();
  const auto after = (here.folder() / "after.json").string();
  const auto made = here.run(
    {"bench", "--only", "machine", "--seconds", "0", "--threads", "1", "-q", "-o", before});
  BOOST_REQUIRE_MESSAGE(made.code == 0, made.all());
  const auto same = here.run({"bench", "--compare", before, before});
  BOOST_TEST(same.code == 0, same.all());
  BOOST_TEST(same.mentions("0 rows moved beyond noise"), same.all());
  auto changed = nlohmann::json::parse(read_file(before));
  for (const auto* key : {"median", "low", "high"})
    changed.at("rows").at(0).at(key) = changed.at("rows").at(0).at(key).get<double>() / 4;
  std::ofstream{after} << changed;
  const auto slower = here.run({"bench", "--compare", before, after});
  BOOST_TEST(slower.code == 1, slower.all());
  BOOST_TEST(slower.mentions("-75.0 %"), slower.all());
  BOOST_TEST(here.run({"bench", "--compare", after, before}).code == 0, "faster is no fault");
  const auto json = here.run({"bench", "--compare", before, after, "--json"});
  BOOST_TEST(json.code == 1);
  BOOST_TEST(json.mentions("\"worse\": true"), json.all());
  std::ofstream{after} << "{ \"rows\": 3";
  const auto damaged = here.run({"bench", "--compare", before, after});
  BOOST_TEST(damaged.code == 3, damaged.all());
  BOOST_TEST(damaged.mentions("after.json: line 1, column"), damaged.all());
}

BOOST_AUTO_TEST_CASE(wishes_that_cannot_be_measured_are_refused_at_once) {
  const cluster here{unused_file};
  const auto refused = [&](std::vector<std::string> words, const std::string& why) {
    words.insert(words.begin(), "bench");
    const auto ran = here.run(words, 10);
    BOOST_TEST(ran.code == 2, ran.all());
    BOOST_TEST(ran.mentions(why), ran.all());
  };
  refused({"--only", "kernles"}, "no such part; machine, transport");
  refused({"--only", "machine,cluster"}, "--only cluster needs a model");
  refused({"--seconds", "-1"}, "0 to 60");
  refused({"--repeats", "0"}, "1 or more");
  refused({"--shape", "7B"}, "110M, 1.1B");
  refused({"--compare", "one.json"}, "--compare");
}

BOOST_AUTO_TEST_CASE(an_interrupted_bench_ends_soon_and_leaves_nothing) {
  const cluster here{unused_file};
  auto running = here.start({"bench", "--only", "transport,collectives,boundary"});
  BOOST_TEST(running.hear(20s).has_value(), "it says what it measures");
  BOOST_TEST(running.signal(SIGINT));
  // Children die with it: the pipe closes when all of them are gone.
  running.hear_all(20s);
  const auto ended = running.wait(20s);
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->exited);
  BOOST_TEST(ended->code == 130);
}
