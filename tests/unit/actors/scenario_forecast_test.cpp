// Scenarios as clusters: what is chosen, what does not fit, and what failures cost.

#include "compute/architectures/random_model.hpp"
#include "tests/unit/actors/forecast_fixture.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::tests;
using boost::test_tools::tolerance;

namespace {

error refusal_of(const std::string& text) {
  const auto wanted = parsed(text);
  const auto model = model_of(wanted);
  if (!model)
    return model.error();
  const auto made = forecast_scenario(wanted, **model, {});
  BOOST_REQUIRE_MESSAGE(!made, "what cannot work was simulated");
  return made.error();
}

void must_say(const error& what, std::initializer_list<const char*> parts) {
  for (const auto* part : parts)
    BOOST_TEST(what.what.find(part) != std::string::npos,
               "\"" << part << "\" is not in\n"
                    << what.what);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sketch_is_planned_as_the_files_would_be) {
  compute::random_model sizes;
  sizes.layers = 5;
  BOOST_REQUIRE(!compute::apply_named_shape("7B", sizes));
  BOOST_TEST(sizes.layers == 5u);
  const auto wanted =
    parsed("[model]\nshape = \"70B\"\ndtype = \"int8\"\ncontext = 1024\n[[host]]\n"
           "count = 8\ncores = 8\nmemory = \"64GiB\"\nread_gb_per_s = 100\n"
           "gflop_per_s = 1000\n");
  const auto model = model_of(wanted);
  BOOST_REQUIRE(model);
  // 70.55 billion parameters: 80 layers of 855.6 million, and twice 128256 x 8192.
  const auto all =
    (*model)->estimate({.units = {0, 80}, .owns_input = true, .owns_output = true}, dtype::bf16);
  BOOST_REQUIRE(all);
  BOOST_TEST(static_cast<double>(all->held_bytes) == 2 * 70.55e9, tolerance(0.001));
  BOOST_TEST((*model)->shape().context == 1024u);
  // And nothing of it can be loaded.
  BOOST_TEST(
    !(*model)->describe({.units = {0, 80}, .owns_input = true, .owns_output = true}, dtype::bf16));
}

BOOST_AUTO_TEST_CASE(sizes_are_chosen_among_those_that_fit) {
  small_scenario small;
  small.hosts = 4;
  small.pipeline = small.tensor = 0;
  small.streams = small.requests = 4;
  small.prompt = 32;
  small.answer = 16;
  const auto made = forecast_of(small);
  BOOST_TEST(made.tried.size() == 6u); // 1, 2, 4 x 1; 1, 2 x 2; 1 x 4
  double best = 0;
  for (const auto& one : made.tried)
    best = std::max(best, one.figure);
  const auto& sizes = made.cluster.plan.sizes;
  for (const auto& one : made.tried)
    if (one.pipeline == sizes.pipeline && one.tensor == sizes.tensor)
      BOOST_TEST(one.figure == best);
  BOOST_TEST(sizes.pipeline * sizes.tensor == 4u, "four hosts are faster than fewer");
}

BOOST_AUTO_TEST_CASE(latency_and_throughput_are_different_aims) {
  small_scenario small;
  small.hosts = 4;
  small.pipeline = small.tensor = 0;
  small.streams = small.requests = 8;
  small.prompt = 1;
  small.answer = 32;
  small.flops = 1;     // rows cost, so that stages that work at once are worth it
  small.rack_us = 100; // and sums are dear, while boundaries are few
  const auto many = forecast_of(small);
  BOOST_TEST(many.cluster.plan.sizes.pipeline == 4u);
  small.flops = 10;
  small.rack_us = 0.1;
  auto text = small.text();
  const auto at = text.find("[parallel]\n");
  text.insert(at + 11, "best = \"latency\"\n");
  BOOST_TEST(forecast_of(text).cluster.plan.sizes.tensor == 4u);
}

BOOST_AUTO_TEST_CASE(what_cannot_work_is_pointed_at) {
  small_scenario small;
  small.hosts = 3;
  small.pipeline = 2;
  small.tensor = 2;
  must_say(refusal_of(small.text()),
           {"small.toml:", "2 x 2 ranks are more than the 3", "pipeline = 2", "^"});
  small.hosts = 9;
  small.pipeline = 9;
  small.tensor = 1;
  must_say(refusal_of(small.text()), {"small.toml:", "9 stages for 8 layers", "1 to 8", "^"});
  small.hosts = 8;
  small.pipeline = 1;
  small.tensor = 8;
  must_say(refusal_of(small.text()), {"tensor size 8", "4 heads, 1 to 4", "^"});
  auto text = small_scenario{}.text();
  text.replace(text.find("1GiB"), 4, "1MiB");
  const auto refused = refusal_of(text);
  BOOST_CHECK(refused.code == errc::out_of_memory);
  must_say(refused, {"host-0"});
  must_say(refusal_of("[model]\npath = \"/nowhere\"\n[[host]]\ncores = 1\nmemory = \"1GiB\"\n"
                      "read_gb_per_s = 1\ngflop_per_s = 1\n"),
           {"/nowhere"});
}

BOOST_AUTO_TEST_CASE(failures_cost_what_a_sum_by_hand_says) {
  small_scenario small;
  small.hosts = small.pipeline = 4;
  small.more =
    "[failures]\nhosts_per_week = 0.5\nprocesses_per_week = 2\nnotice_s = 3\njoin_s = 1\n"
    "load_gb_per_s = 1e-3\nhost_back_s = 100\n";
  const auto alone = forecast_of(small);
  const auto& costs = alone.recoveries;
  BOOST_TEST(costs.per_week == 4 * 2.5, tolerance(1e-9));
  double heaviest = 0;
  for (const auto& rank : alone.cluster.plan.ranks)
    heaviest = std::max(heaviest, static_cast<double>(rank.weight_bytes));
  BOOST_TEST(costs.load_s == heaviest / 1e6, tolerance(1e-9));
  BOOST_TEST(costs.process_s == 4 + costs.load_s + costs.replay_s, tolerance(1e-9));
  BOOST_TEST(costs.host_s == costs.process_s + 100, tolerance(1e-9));
  const auto lost = 2 * costs.host_s + 8 * costs.process_s;
  BOOST_TEST(costs.lost_s_a_week == lost, tolerance(1e-9));
  BOOST_TEST(costs.lost_part == lost / (604'800 + lost), tolerance(1e-9));
  small.more += "spares = 1\n";
  BOOST_TEST(forecast_of(small).recoveries.host_s == costs.process_s, tolerance(1e-9));
  small.more = "";
  BOOST_TEST(forecast_of(small).recoveries.lost_part == 0.0);
}

BOOST_AUTO_TEST_CASE(faster_hosts_get_more_layers) {
  auto text = small_scenario{.hosts = 1, .pipeline = 2}.text();
  text += "[[host]]\ncount = 1\ncores = 1\nmemory = \"1GiB\"\nread_gb_per_s = 3\ngflop_per_s = 10\n"
          "read_reached = 1.0\nflops_reached = 1.0\nlayer_us = 0\n";
  const auto stages = forecast_of(text).cluster.plan.stages;
  BOOST_TEST(stages[1].size() > stages[0].size());
}
