// A cluster that loses processes while it works: who notices, what is rebuilt, what goes on.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/crew.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

cluster_shape stages(std::size_t pipeline, std::size_t tensor = 1, const std::string& more = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  shape.more = more;
  return shape;
}

/// That the program goes by a key of the file.
void check_told(const cluster& where, const std::string& key, const std::string& value) {
  const auto told = where.run({"config", "FILE"}, 10);
  const auto line = std::find_if(told.lines.begin(), told.lines.end(), [&](const auto& one) {
    return one.find(key) != std::string::npos;
  });
  BOOST_REQUIRE(line != told.lines.end());
  BOOST_TEST(line->find(value) != std::string::npos, *line);
}

} // namespace

BOOST_AUTO_TEST_CASE(E01_only_the_lost_stage_computes_anything_again) {
  const cluster three{stages(3)};
  const auto lines = some_requests(4, 1500);
  const auto expected = three.generate(lines);
  crew nodes{three, 3};
  background_requests requests{three, lines};
  BOOST_REQUIRE(status_becomes(three, "\"running\":4", 10s));
  for (const std::size_t lost : {1, 2}) {
    std::this_thread::sleep_for(200ms);
    const auto before = nodes.epoch();
    nodes.kill(lost);
    nodes.start(lost);
    BOOST_REQUIRE(nodes.serves_with(3, 20s, before));
  }
  std::this_thread::sleep_for(400ms); // a beat
  BOOST_TEST(nodes.gauges().at(0).at("rows_replayed") == 0u);
  BOOST_TEST(nodes.gauges().at(0).at("rows_resent") > 0u);
  BOOST_TEST(nodes.gauges().at(1).at("rows_replayed") > 0u); // in its present life
  BOOST_TEST(nodes.gauges().at(1).at("rows_resent") > 0u);
  BOOST_TEST(nodes.gauges().at(2).at("rows_replayed") > 0u);
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(without_kept_rows_the_stages_before_compute_again_and_tokens_stay_the_same) {
  const cluster three{stages(3, 1, "[recovery]\nkeep_boundaries = false\n")};
  check_told(three, "recovery.keep_boundaries", "false");
  const auto lines = some_requests(2, 1200);
  const auto expected = three.generate(lines);
  crew nodes{three, 3};
  background_requests requests{three, lines};
  BOOST_REQUIRE(status_becomes(three, "\"running\":2", 10s));
  std::this_thread::sleep_for(200ms);
  const auto before = nodes.epoch();
  nodes.kill(1);
  nodes.start(1);
  BOOST_REQUIRE(nodes.serves_with(3, 20s, before));
  std::this_thread::sleep_for(400ms);
  BOOST_TEST(nodes.gauges().at(0).at("rows_replayed") > 0u);
  BOOST_TEST(nodes.gauges().at(2).at("rows_replayed") == 0u);
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(a_member_that_dies_does_not_hold_its_tensor_group) {
  const cluster four{stages(2, 2)};
  const auto lines = some_requests(3, 500);
  const auto expected = four.generate(lines);
  crew nodes{four, 4};
  background_requests requests{four, lines};
  BOOST_REQUIRE(status_becomes(four, "\"running\":3", 10s));
  for (const std::size_t lost : {1, 3}) {
    std::this_thread::sleep_for(200ms);
    const auto before = nodes.epoch();
    const auto died = clock_type::now();
    nodes.kill(lost);
    nodes.start(lost);
    BOOST_REQUIRE(nodes.serves_with(4, 20s, before));
    // Far below deadlines.step_ms, until which the other member would wait inside of its reduction.
    BOOST_TEST((clock_type::now() - died < 10s));
  }
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(E25_a_frozen_node_is_noticed_within_its_bound_and_replaced) {
  const cluster three{stages(3)};
  const auto lines = some_requests(2, 1200);
  const auto expected = three.generate(lines);
  crew nodes{three, 3};
  background_requests requests{three, lines};
  BOOST_REQUIRE(status_becomes(three, "\"running\":2", 10s));
  nodes.node(1).signal(SIGSTOP);
  const auto frozen = clock_type::now();
  BOOST_REQUIRE(status_becomes(three, "it is frozen or cut off", 10s));
  // deadlines.progress_ms, half a second, and the questions.
  BOOST_TEST((clock_type::now() - frozen < 3s));
  auto sleeper = std::move(nodes.node(1));
  nodes.start(1);
  BOOST_REQUIRE(status_becomes(three, serving, 20s));
  sleeper.signal(SIGCONT); // wakes into an epoch that is long over
  const auto ended = sleeper.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code != 0));
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(up_starts_a_node_again_that_was_killed_or_froze) {
  auto shape = stages(2, 1, "[recovery]\nrestart_pause_ms = 50\n");
  const cluster two{shape};
  const auto lines = some_requests(2, 1500);
  const auto expected = two.generate(lines);
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 30s));
  const auto becomes_another = [&](pid_t before) {
    const auto until = clock_type::now() + 20s;
    for (auto now = before; clock_type::now() < until; now = process_of(two, "n1"))
      if (now != before && now != 0)
        return true;
    return false;
  };
  background_requests requests{two, lines};
  BOOST_REQUIRE(status_becomes(two, "\"running\":2", 10s));
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const auto before = process_of(two, "n1");
    ::kill(before, signal);
    BOOST_REQUIRE(becomes_another(before));
    BOOST_REQUIRE(status_becomes(two, serving, 20s));
  }
  requests.compare(expected);
  up.signal(SIGINT);
  std::string said;
  for (const auto& line : up.hear_all(20s))
    said += line + "\n";
  BOOST_TEST(said.find("n1 is started again (1 of 5)") != std::string::npos, said);
  BOOST_TEST(said.find("n1 was given up") != std::string::npos, said);
  const auto ended = up.wait(20s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
}

BOOST_AUTO_TEST_CASE(up_says_when_a_node_has_used_its_restarts_up) {
  const cluster two{stages(2, 1, "[recovery]\nrestarts = 1\nrestart_pause_ms = 50\n")};
  check_told(two, "recovery.restarts", "1");
  check_told(two, "recovery.restart_pause_ms", "50");
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 30s));
  for (int time = 0; time < 2; ++time) {
    BOOST_REQUIRE(status_becomes(two, serving, 20s));
    const auto node = process_of(two, "n1");
    BOOST_REQUIRE(node > 0);
    ::kill(node, SIGKILL);
    std::this_thread::sleep_for(500ms); // it is noticed
  }
  std::string said;
  for (const auto& line : up.hear_all(30s))
    said += line + "\n";
  const auto ended = up.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code != 0));
  BOOST_TEST(said.find("recovery.restarts = 1") != std::string::npos, said);
}
