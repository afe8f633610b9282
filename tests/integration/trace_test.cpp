// `troupe trace`: one file over all ranks, on one clock, and what follows from the order of things.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/crew.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr int conductor = 0;  // its process in a trace; ranks follow
constexpr double hair = 1e-3; // microseconds: a nanosecond

cluster_shape four_nodes() {
  cluster_shape made;
  made.model = small_model().folder();
  made.pipeline = 2;
  made.tensor = 2;
  return made;
}

struct span {
  std::string name;
  int process = 0, thread = 0;
  double begin = 0, end = 0;
  json args;
};

struct read_trace {
  std::map<int, std::string> names; ///< Of processes.
  std::vector<span> spans;

  std::vector<span> of(int process, const std::string& prefix) const {
    std::vector<span> found;
    for (const auto& one : spans)
      if (one.process == process && one.name.starts_with(prefix))
        found.push_back(one);
    return found;
  }
};

read_trace read(const std::filesystem::path& file) {
  std::ifstream in(file);
  const auto whole = json::parse(in, nullptr, false);
  BOOST_REQUIRE_MESSAGE(whole.is_object(), file << " is no JSON");
  read_trace made;
  for (const auto& event : whole.at("traceEvents")) {
    const auto process = event.at("pid").get<int>();
    if (event.at("ph") == "M") {
      if (event.at("name") == "process_name")
        made.names[process] = event["args"].at("name").get<std::string>();
      continue;
    }
    BOOST_REQUIRE(event.at("ph") == "X");
    const auto begin = event.at("ts").get<double>();
    made.spans.push_back({event.at("name").get<std::string>(),
                          process,
                          event.at("tid").get<int>(),
                          begin,
                          begin + event.at("dur").get<double>(),
                          event.at("args")});
  }
  return made;
}

/// Spans of a thread lie within each other or beside each other.
void check_nesting(std::vector<span> spans) {
  std::sort(spans.begin(), spans.end(), [](const span& one, const span& other) {
    return one.begin < other.begin || (one.begin == other.begin && one.end > other.end);
  });
  std::vector<span> open;
  for (const auto& one : spans) {
    BOOST_TEST(one.begin >= 0);
    BOOST_TEST(one.end >= one.begin);
    while (!open.empty() && open.back().end <= one.begin + hair)
      open.pop_back();
    if (!open.empty()) {
      BOOST_TEST(one.end <= open.back().end + hair, one.name << " ends after " << open.back().name);
      BOOST_TEST(one.args.at("step") == open.back().args.at("step"));
    }
    open.push_back(one);
  }
}

std::map<int, span> by_step(const std::vector<span>& spans) {
  std::map<int, span> made;
  for (const auto& one : spans)
    made.emplace(one.args.at("step").get<int>(), one);
  return made;
}

outcome trace(const cluster& where,
              const std::filesystem::path& file,
              int steps,
              const std::vector<std::string>& more = {}) {
  return where.run(
    with({"trace", "FILE", "--steps", std::to_string(steps), "--out", file.string()}, more));
}

} // namespace

BOOST_AUTO_TEST_CASE(every_rank_is_in_one_trace_whose_spans_are_in_order) {
  const cluster four{four_nodes()};
  const serving_cluster serving{four};
  const auto file = four.folder().path() / "trace.json";
  const auto told = trace(four, file, 30);
  BOOST_REQUIRE_MESSAGE(told.code == 0, told.all());
  BOOST_TEST(told.mentions("% bubbles"));
  const auto made = read(file);
  BOOST_TEST(made.names.at(conductor) == "conductor");
  BOOST_TEST(made.names.at(3) == "rank 2, stage 1, node n2");
  std::map<std::pair<int, int>, std::vector<span>> threads;
  for (const auto& one : made.spans) {
    threads[{one.process, one.thread}].push_back(one);
    for (const auto* name : {"epoch", "step", "micro_batch", "rows", "requests"})
      BOOST_TEST(one.args.contains(name), one.name << " has no " << name);
    BOOST_TEST(one.args.at("epoch") == 1);
  }
  for (const auto& [which, spans] : threads)
    check_nesting(spans);
  for (int process = 1; process <= 4; ++process) {
    const auto steps = by_step(made.of(process, "step "));
    BOOST_TEST(steps.size() == 30u);
    BOOST_TEST(!made.of(process, "layer ").empty());
    BOOST_TEST(!made.of(process, "collective").empty());
    std::set<int> micro_batches;
    for (const auto& [step, one] : steps) {
      micro_batches.insert(one.args.at("micro_batch").get<int>());
      BOOST_TEST(!one.args.at("requests").empty());
    }
    BOOST_TEST(micro_batches == (std::set<int>{0, 1}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_stage_works_on_a_micro_batch_after_the_one_before_it) {
  const cluster four{four_nodes()};
  const serving_cluster serving{four};
  const auto file = four.folder().path() / "trace.json";
  BOOST_REQUIRE(trace(four, file, 40, {"--requests", "6"}).code == 0);
  const auto made = read(file);
  std::size_t overlaps = 0;
  for (int tensor = 0; tensor < 2; ++tensor) {
    const auto first = by_step(made.of(1 + tensor, "step "));
    const auto second = by_step(made.of(3 + tensor, "step "));
    const auto sends = by_step(made.of(1 + tensor, "send"));
    for (const auto& [step, one] : second) {
      // One host has one clock: no allowance is made.
      BOOST_TEST(one.begin > first.at(step).begin);
      BOOST_TEST(one.begin > sends.at(step).begin, "rows were used before they were sent");
      BOOST_TEST(one.args.at("micro_batch") == first.at(step).args.at("micro_batch"));
      const auto next = first.find(step + 1);
      overlaps += next != first.end() && next->second.begin < one.end ? 1 : 0;
    }
  }
  BOOST_TEST(overlaps > 10u); // the pipeline: stage 0 is at the next micro-batch meanwhile
  const auto plans = by_step(made.of(conductor, "step "));
  const auto begun = by_step(made.of(1, "step "));
  const auto ended = by_step(made.of(3, "send"));
  for (const auto& [step, plan] : plans) {
    BOOST_TEST(plan.begin < begun.at(step).begin);
    BOOST_TEST(plan.end > ended.at(step).begin);
  }
}

BOOST_AUTO_TEST_CASE(a_cluster_that_does_not_run_is_started_for_it) {
  const cluster four{four_nodes()};
  const auto file = four.folder().path() / "own.json";
  const auto told = trace(four, file, 10);
  BOOST_REQUIRE_MESSAGE(told.code == 0, told.all());
  BOOST_TEST(by_step(read(file).of(4, "step ")).size() == 10u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_traced_is_said) {
  const cluster four{four_nodes()};
  const serving_cluster serving{four};
  const auto file = four.folder().path() / "none.json";
  const auto idle = trace(four, file, 10, {"--requests", "0", "--wait", "1"});
  BOOST_TEST(idle.code != 0);
  BOOST_TEST(idle.mentions("no step ran within 1 s; --requests 4"), idle.all());
  BOOST_TEST(!std::filesystem::exists(file));
  const auto unwritable = trace(four, "/proc/none/trace.json", 5);
  BOOST_TEST(unwritable.code != 0);
  BOOST_TEST(unwritable.mentions("/proc/none/trace.json cannot be written"), unwritable.all());
  const auto none = trace(four, file, 0);
  BOOST_TEST(none.code == 2, none.all());
  // And after all of that a trace is a trace.
  BOOST_TEST(trace(four, file, 5).code == 0);
}
