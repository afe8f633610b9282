#include "actors/plan/stage_split.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <random>

using namespace troupe;
using namespace troupe::actors;

namespace {

using sizes = std::vector<std::size_t>;

compute::model_costs costs_of(double unit, double input, double output) {
  compute::model_costs costs;
  costs.unit_bytes = unit;
  costs.input_bytes = input;
  costs.output_bytes = output;
  return costs;
}

sizes split(std::size_t layers, const compute::model_costs& costs, std::vector<double> speeds) {
  sizes found;
  std::size_t end = 0;
  for (const auto& one : balance_stages(layers, costs, speeds)) {
    BOOST_TEST(one.begin == end);
    BOOST_TEST(!one.empty());
    end = one.end;
    found.push_back(one.size());
  }
  BOOST_TEST(end == layers);
  return found;
}

double
slowest(const sizes& stages, const compute::model_costs& costs, const std::vector<double>& speeds) {
  double most = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    auto bytes = static_cast<double>(stages[s]) * costs.unit_bytes;
    bytes += s == 0 ? costs.input_bytes : 0;
    bytes += s + 1 == stages.size() ? costs.output_bytes : 0;
    most = std::max(most, bytes / speeds[s]);
  }
  return most;
}

/// The slowest stage of the best of all splits, by trying them all.
double best_of_all(std::size_t layers,
                   const compute::model_costs& costs,
                   const std::vector<double>& speeds) {
  double best = std::numeric_limits<double>::infinity();
  sizes stages;
  const std::function<void(std::size_t)> place = [&](std::size_t left) {
    if (stages.size() + 1 == speeds.size()) {
      stages.push_back(left);
      best = std::min(best, slowest(stages, costs, speeds));
      stages.pop_back();
      return;
    }
    const auto others = speeds.size() - stages.size() - 1;
    for (std::size_t count = 1; count + others <= left; ++count) {
      stages.push_back(count);
      place(left - count);
      stages.pop_back();
    }
  };
  place(layers);
  return best;
}

} // namespace

BOOST_AUTO_TEST_CASE(rule_2_equal_stages_give_the_remainder_to_the_first_owners) {
  const auto flat = costs_of(1, 0, 0);
  const auto check_split = [&](std::size_t layers, std::size_t stages, const sizes& expected) {
    BOOST_TEST(split(layers, flat, std::vector(stages, 1.0)) == expected,
               boost::test_tools::per_element());
  };
  check_split(10, 3, {4, 3, 3});
  check_split(7, 3, {3, 2, 2});
  check_split(12, 4, {3, 3, 3, 3});
  check_split(100, 7, {15, 15, 14, 14, 14, 14, 14});
  check_split(5, 5, {1, 1, 1, 1, 1});
  check_split(9, 1, {9});
}

BOOST_AUTO_TEST_CASE(a_heavy_head_relieves_the_last_stage) {
  BOOST_TEST(split(12, costs_of(1, 0, 4), {1, 1}) == (sizes{8, 4}),
             boost::test_tools::per_element());
  // Heavier than all layers together: the last stage keeps one.
  BOOST_TEST(split(6, costs_of(1, 0, 100), {1, 1, 1}) == (sizes{3, 2, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_row_of_the_embedding_does_not_move_a_layer) {
  BOOST_TEST(split(30, costs_of(4e8, 8e3, 3e8), {1, 1, 1, 1}) == (sizes{8, 8, 7, 7}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_split_has_a_clearly_faster_slowest_stage) {
  std::mt19937 random{7};
  std::uniform_real_distribution<double> real{0.1, 4.0};
  for (int round = 0; round < 200; ++round) {
    const std::size_t stages = 1 + random() % 5;
    const std::size_t layers = stages + random() % 10;
    const auto costs = costs_of(real(random), real(random), real(random) * 3);
    std::vector<double> speeds;
    for (std::size_t s = 0; s < stages; ++s)
      speeds.push_back(real(random));
    BOOST_TEST(slowest(split(layers, costs, speeds), costs, speeds)
                 <= best_of_all(layers, costs, speeds) * 1.005,
               "round " << round);
  }
}

BOOST_AUTO_TEST_CASE(many_layers_are_split_at_once) {
  // 1000 layers on 64 hosts: a plan is ready before anybody notices.
  const auto stages = split(1000, costs_of(1e8, 1e4, 5e8), std::vector(64, 1.0));
  BOOST_TEST(*std::max_element(stages.begin(), stages.end()) == 16u);
}
