// The figures that the product promises, measured against limits of the same run. A shared machine
// disturbs single runs, rarely all of them: each promise has several tries, and the best one
// counts. With `-- promised` the promise itself is asked for (ctest -C bench), otherwise three
// fifths of it, so that a busy neighbour is no failure and a slow kernel still is.

#include "tests/support/cluster.hpp"

#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <fstream>
#include <string_view>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr int tries = 12;

/// What is asked for where `promise` is promised.
double asked(double promise) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  const bool in_full = suite.argc > 1 && std::string_view{suite.argv[1]} == "promised";
  return in_full ? promise : 0.6 * promise;
}

/// The best fraction of its limit that a row of `troupe bench` reached in several runs. Rows are
/// named without their threads.
double best_of_bench(const std::string& threads, const std::string& what, double enough) {
  const cluster unused{"[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n"};
  double best = 0;
  for (int i = 0; i < tries && best < enough; ++i) {
    const auto report = (unused.folder() / "bench.json").string();
    const auto ran = unused.run({"bench",
                                 shape_110m().folder().string(),
                                 "--only",
                                 "model",
                                 "--threads",
                                 threads,
                                 "--steps",
                                 "32",
                                 "--output",
                                 report,
                                 "--quiet"});
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
    std::ifstream in{report};
    const auto found = nlohmann::json::parse(in);
    for (const auto& row : found.at("rows"))
      if (row.at("what").get<std::string>().starts_with(what))
        best = std::max(best, row.at("fraction").get<double>());
  }
  return best;
}

double tokens_per_second(std::size_t pipeline) {
  cluster_shape shape;
  shape.model = shape_110m().folder();
  shape.pipeline = pipeline;
  shape.more = "[state]\nmax_sequences = 1\n";
  const cluster one{shape};
  const auto ran = one.try_generate({token_prompt({1, 2, 3, 4}, 96)});
  BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
  for (const auto& line : ran.lines) {
    const auto answer = nlohmann::json::parse(line, nullptr, false);
    if (answer.is_object() && answer.contains("total_s"))
      return 95.0 / (answer.at("total_s").get<double>() - answer.at("first_token_s").get<double>());
  }
  return 0;
}

} // namespace

BOOST_AUTO_TEST_CASE(decode_reads_weights_at_four_fifths_of_the_bandwidth) {
  for (const auto* threads : {"1", "2"}) {
    const auto ratio = best_of_bench(threads, "decode", asked(0.8));
    BOOST_TEST_MESSAGE("decode, " << threads << " threads: " << ratio << " of the bandwidth");
    BOOST_TEST(ratio >= asked(0.8));
  }
}

BOOST_AUTO_TEST_CASE(prefill_multiplies_at_three_fifths_of_the_peak) {
  for (const auto* threads : {"1", "2"}) {
    const auto ratio = best_of_bench(threads, "prompt", asked(0.6));
    BOOST_TEST_MESSAGE("prefill of 512, " << threads << " threads: " << ratio << " of the peak");
    BOOST_TEST(ratio >= asked(0.6));
  }
}

BOOST_AUTO_TEST_CASE(two_stages_lose_at_most_a_twentieth_on_one_stream) {
  // One stream keeps one stage busy at a time, so one process with one thread does the same work.
  double best = 0;
  for (int i = 0; i < tries && best < asked(0.95); ++i) {
    const auto whole = tokens_per_second(1);
    const auto split = tokens_per_second(2);
    best = std::max(best, split / whole);
    BOOST_TEST_MESSAGE("one process " << whole << ", two stages " << split << " tokens/s");
  }
  BOOST_TEST_MESSAGE("two stages: " << best << " of one process");
  BOOST_TEST(best >= asked(0.95));
}
