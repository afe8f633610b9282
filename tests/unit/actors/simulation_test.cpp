// The simulator, against closed forms, laws of conservation and common sense.

#include "tests/unit/actors/forecast_fixture.hpp"
#include "transport/frame.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <numeric>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::tests;
using boost::test_tools::tolerance;

namespace {

/// Seconds of a step on a stage whose hosts nobody shares.
double stage_seconds(const forecast_cluster& cluster, std::size_t stage, const step_load& load) {
  double slowest = 0;
  for (const auto& rank : cluster.ranks_of(stage)) {
    const auto& node = cluster.nodes[rank.node];
    slowest = std::max(slowest,
                       seconds(rank_work(cluster, rank, load),
                               cluster.hosts[node.host].cores,
                               node.threads,
                               node.threads));
  }
  return slowest + group_cost(cluster, stage, load).s;
}

/// A step through all stages and back, alone.
double pass_seconds(const forecast_cluster& cluster, const step_load& load) {
  const auto stages = cluster.plan.sizes.pipeline;
  double sum =
    message_time(cluster, 0, load).seconds() + message_time(cluster, stages - 1, load).seconds();
  for (std::size_t stage = 0; stage < stages; ++stage) {
    sum += stage_seconds(cluster, stage, load);
    if (stage + 1 < stages)
      sum += boundary_time(cluster, stage, load).seconds();
  }
  return sum;
}

step_load one_row(std::size_t position) {
  step_load load;
  add_rows(load, position, 1);
  add_output(load, 1); // greedy, as the simulated requests are
  return load;
}

small_scenario spread_over(std::size_t pipeline, std::size_t tensor, std::size_t streams) {
  small_scenario small;
  small.hosts = pipeline * tensor;
  small.pipeline = pipeline;
  small.tensor = tensor;
  small.streams = streams;
  small.requests = 3 * streams;
  small.prompt = 100;
  small.answer = 20;
  small.rack_us = 20;
  small.rack_gb_per_s = 1;
  return small;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_stream_takes_the_sum_of_its_steps) {
  for (const auto& [pipeline, tensor] : {std::pair{1, 1}, {2, 1}, {4, 1}, {1, 2}, {2, 2}}) {
    auto small = spread_over(pipeline, tensor, 1);
    small.requests = 1;
    small.prompt = 1;
    small.answer = 20;
    const auto made = forecast_of(small);
    double expected = 0;
    for (std::size_t position = 0; position < 20; ++position)
      expected += pass_seconds(made.cluster, one_row(position));
    BOOST_TEST(made.run.seconds == expected, tolerance(1e-9));
    BOOST_TEST(made.run.first_heard_s == pass_seconds(made.cluster, one_row(0)), tolerance(1e-9));
    BOOST_TEST(made.run.requests.front().total_s == made.run.seconds);
    BOOST_TEST(made.run.steps == 20u);
  }
}

BOOST_AUTO_TEST_CASE(full_pipelines_work_at_the_pace_of_the_slowest_stage) {
  // Two streams on two stages with messages that take no time: both stages always work, and a round
  // of both streams takes two steps of the slower one.
  auto small = spread_over(2, 1, 2);
  small.requests = 2;
  small.prompt = 1;
  small.answer = 200;
  small.rack_us = 0;
  small.rack_gb_per_s = 1e6;
  const auto made = forecast_of(small);
  const auto slower = std::max(stage_seconds(made.cluster, 0, one_row(100)),
                               stage_seconds(made.cluster, 1, one_row(100)));
  BOOST_TEST(made.run.answer_rate() == 1 / slower, tolerance(0.02));
  BOOST_TEST(made.run.bubble() < 0.2);
}

BOOST_AUTO_TEST_CASE(one_stream_leaves_all_stages_but_one_idle) {
  auto small = spread_over(4, 1, 1);
  small.requests = 1;
  small.prompt = 1;
  small.answer = 50;
  const auto made = forecast_of(small);
  BOOST_TEST(made.run.bubble() > 0.74);
}

BOOST_AUTO_TEST_CASE(tokens_bytes_and_time_are_conserved) {
  for (const auto& [pipeline, tensor, streams] :
       {std::tuple{1, 1, 1}, {2, 1, 4}, {4, 2, 7}, {8, 1, 3}}) {
    const auto made = forecast_of(spread_over(pipeline, tensor, streams));
    const auto& run = made.run;
    const auto requests = 3u * streams;
    BOOST_TEST(run.requests.size() == requests);
    BOOST_TEST(run.prompt_tokens == 100u * requests);
    BOOST_TEST(run.answer_tokens == 20u * requests);
    // Every token but an answer's last one is a row, once, on each stage.
    const double rows = 119.0 * requests;
    const double row_bytes = 64 * 4;
    for (std::size_t stage = 0; stage + 1 < run.stages.size(); ++stage) {
      const auto& use = run.stages[stage];
      BOOST_TEST(use.boundary_bytes
                   == tensor * (rows * row_bytes + run.steps * transport::wire_header_bytes),
                 tolerance(1e-9));
      BOOST_TEST(use.messages == run.steps);
    }
    for (const auto& use : run.stages)
      BOOST_TEST(use.work_s + use.sum_s <= run.seconds * (1 + 1e-9));
    for (const auto& one : run.requests) {
      BOOST_TEST(one.first_token_s > 0);
      BOOST_TEST(one.total_s >= one.first_token_s);
      BOOST_TEST(one.submitted_s + one.total_s <= run.seconds * (1 + 1e-9));
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_figures) {
  auto small = spread_over(2, 2, 5);
  small.more = "spread = 0.5\nseed = 3\n";
  const auto first = forecast_of(small);
  const auto second = forecast_of(small);
  BOOST_TEST(first.run.seconds == second.run.seconds);
  BOOST_TEST(first.run.steps == second.run.steps);
  small.more = "spread = 0.5\nseed = 4\n";
  BOOST_TEST(forecast_of(small).run.seconds != first.run.seconds);
}

BOOST_AUTO_TEST_CASE(nothing_that_is_faster_makes_a_cluster_slower) {
  const auto rate = [](const small_scenario& small) {
    return forecast_of(small).run.answer_rate();
  };
  for (const auto& [pipeline, tensor, streams] :
       {std::tuple{2, 1, 1}, {2, 1, 4}, {1, 2, 2}, {4, 2, 8}}) {
    auto small = spread_over(pipeline, tensor, streams);
    double before = 0;
    for (const double us : {500.0, 100.0, 20.0, 1.0, 0.0}) {
      small.rack_us = us;
      const auto now = rate(small);
      BOOST_TEST(now >= before * (1 - 1e-9), "latency of " << us << " us");
      before = now;
    }
    for (const double gb : {2.0, 10.0, 100.0}) {
      small.rack_gb_per_s = gb;
      const auto now = rate(small);
      BOOST_TEST(now >= before * (1 - 1e-9), "links of " << gb << " GB/s");
      before = now;
    }
    for (const double read : {2.0, 4.0}) {
      small.read = read;
      const auto now = rate(small);
      BOOST_TEST(now > before, "memory of " << read << " GB/s");
      before = now;
    }
    small.flops = 100;
    BOOST_TEST(rate(small) > before);
  }
}

BOOST_AUTO_TEST_CASE(ranks_on_one_host_share_its_cores) {
  // Two stages, each a thread of a host with one core: together no faster than one stage there.
  auto apart = spread_over(2, 1, 8);
  auto together = apart;
  together.hosts = 1;
  together.ranks = 2;
  together.more = "";
  apart.rack_us = 0;
  apart.rack_gb_per_s = 1e6;
  const auto slow = forecast_of(together).run.answer_rate();
  const auto fast = forecast_of(apart).run.answer_rate();
  BOOST_TEST(fast > 1.7 * slow);
  // And slower than the model as one stage: two steps in flight read all weights twice a round.
  const auto whole = forecast_of(spread_over(1, 1, 8)).run.answer_rate();
  BOOST_TEST(slow < whole);
  BOOST_TEST(slow > whole / 2);
}

BOOST_AUTO_TEST_CASE(hundreds_of_ranks_take_seconds_at_most) {
  const std::string big =
    "[model]\nshape = \"405B\"\nstored = \"bf16\"\ncontext = 4096\n[[host]]\ncount = 512\ncores = "
    "64\nmemory = \"64GiB\"\nread_gb_per_s = 400\ngflop_per_s = 4000\nper_rack = 16\n"
    "[parallel]\npipeline = 64\ntensor = 8\n[load]\nstreams = 64\nprompt = 512\nanswer = 32\n";
  const auto begun = std::chrono::steady_clock::now();
  const auto made = forecast_of(big);
  const auto took = std::chrono::steady_clock::now() - begun;
  BOOST_TEST(made.cluster.plan.ranks.size() == 512u);
  BOOST_TEST(made.hosts_used == 512u);
  BOOST_TEST(made.run.answer_tokens == 128u * 32u);
  // Virtual minutes, real seconds: generous for a loaded machine.
  BOOST_TEST((took < std::chrono::seconds(30)));
}
