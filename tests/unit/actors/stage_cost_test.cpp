// What a step costs, against sums done by hand.

#include "tests/unit/actors/forecast_fixture.hpp"
#include "transport/frame.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::tests;
using boost::test_tools::tolerance;

namespace {

/// Elements of a layer's products: query and output of 4 heads of 16, keys and values of 2, and
/// three matrices of the feed-forward layer.
constexpr double unit_elements = 64.0 * (2 * 64 + 2 * 32 + 3 * 128);
constexpr double head_elements = 64.0 * 256;

/// With the number of candidates of the last row's token, if there is one; 0: whole logits.
step_load rows_at(std::size_t position, std::size_t count, std::optional<std::size_t> output = {}) {
  step_load load;
  add_rows(load, position, count);
  if (output)
    add_output(load, *output);
  return load;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_product_costs_the_larger_of_reading_and_computing) {
  described_host host;
  host.cores = 1;
  host.read_bytes_per_s = 10e9;
  host.flops_per_s = 100e9;
  host.read_reached = 0.5;
  host.flops_reached = 0.25;
  const auto speed = speed_of(host, 2);
  // 2 bytes at 5 GB/s are 0.4 ns; two operations at 25 Gflop/s 0.08 ns a row: even at 5 rows.
  for (const double rows : {1.0, 2.0, 4.9, 5.0, 5.1, 40.0, 1000.0}) {
    const auto expected = std::max(0.4e-9, rows * 0.08e-9);
    BOOST_TEST(element_seconds(speed.products.one, rows) == expected, tolerance(1e-9));
    BOOST_TEST(element_seconds(speed.products.all, rows) == expected, tolerance(1e-9));
  }
  // Where one row is work enough already, rows are in proportion from the first on.
  host.flops_per_s = 1e9;
  const auto slow = speed_of(host, 2);
  BOOST_TEST(element_seconds(slow.products.one, 1) == 8e-9, tolerance(1e-9));
  BOOST_TEST(element_seconds(slow.products.one, 3) == 24e-9, tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(measured_points_are_joined_by_straight_lines) {
  const std::vector<product_point> points{{1, 10}, {8, 24}, {64, 136}};
  BOOST_TEST(element_seconds(points, 0.5) == 10);
  BOOST_TEST(element_seconds(points, 1) == 10);
  BOOST_TEST(element_seconds(points, 4.5) == 17);
  BOOST_TEST(element_seconds(points, 8) == 24);
  BOOST_TEST(element_seconds(points, 36) == 80);
  BOOST_TEST(element_seconds(points, 128) == 272);
}

BOOST_AUTO_TEST_CASE(threads_share_cores_and_bandwidth) {
  const core_work work{8.0, 1.5}; // two cores do it in 8 / 1.5 seconds
  BOOST_TEST(seconds(work, 2, 1, 1) == 8.0);
  BOOST_TEST(seconds(work, 2, 2, 2) == 8.0 / 1.5);
  // Two ranks of a thread each: together 1.5 times as fast as one, so each 0.75 times.
  BOOST_TEST(seconds(work, 2, 1, 2) == 8.0 / 0.75);
  // Four of them on two cores: each gets half of that.
  BOOST_TEST(seconds(work, 2, 1, 4) == 8.0 / 0.375);
  BOOST_TEST(seconds(work, 1, 1, 3) == 24.0, "a single core is shared and has no bandwidth more");
  BOOST_TEST(speed_up(4.0, 4, 2) == 2.0);
  BOOST_TEST(speed_up(4.0, 4, 9) == 4.0);
}

BOOST_AUTO_TEST_CASE(rows_are_counted_with_the_positions_that_they_look_at) {
  auto load = rows_at(10, 3, 1); // 11, 12 and 13 positions, the last one its own
  BOOST_TEST(load.rows == 3u);
  BOOST_TEST(load.outputs == 1u);
  BOOST_TEST(load.read_positions == 13);
  BOOST_TEST(load.scored_pairs == 11 + 12 + 13);
  add_rows(load, 0, 1);
  BOOST_TEST(load.rows == 4u);
  BOOST_TEST(load.outputs == 1u);
  BOOST_TEST(load.sequences == 2u);
  BOOST_TEST(load.scored_pairs == 37);
}

BOOST_AUTO_TEST_CASE(a_rank_works_as_long_as_a_sum_by_hand_says) {
  const auto cluster = forecast_of(small_scenario{}).cluster;
  const auto& rank = cluster.plan.ranks.front();
  // One row: 4 bytes an element at 1 GB/s.
  const auto read = (8 * unit_elements + head_elements) * 4 / 1e9;
  // Keys and values of one position on 8 layers: less than what the scores take to compute.
  const auto state = 8 * std::max(2 * 4 * 16 * 2 / 1e9, 4 * 16 * 4 / 10e9);
  const auto choice = 256 * 1e-9;
  const auto work = rank_work(cluster, rank, rows_at(0, 1, 1));
  BOOST_TEST(work.one_s == read + state + choice, tolerance(1e-9));
  BOOST_TEST(work.gain == 1.0);
  // 100 rows of a prompt: two operations an element and row, and no head.
  const auto many = rank_work(cluster, rank, rows_at(0, 100));
  const auto products = 8 * unit_elements * 100 * 2 / 10e9;
  const auto pairs = 8 * (100 * 101 / 2) * 4.0 * 16 * 4 / 10e9;
  BOOST_TEST(many.one_s == products + pairs, tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(weights_beyond_the_cache_of_the_measurement_are_slower) {
  auto cluster = forecast_of(small_scenario{}).cluster;
  const auto& rank = cluster.plan.ranks.front();
  const auto step = rows_at(0, 1);
  const auto before = rank_work(cluster, rank, step).one_s;
  auto& host = cluster.hosts.front();
  host.measured_bytes = 1000; // far less than what the rank holds
  host.reads = {{1000, 4e9}, {100'000, 2e9}};
  BOOST_TEST(rank_work(cluster, rank, step).one_s > 1.8 * before);
  host.reads = {{1000, 2e9}, {100'000, 4e9}}; // a cache that is no faster than memory
  BOOST_TEST(rank_work(cluster, rank, step).one_s == before);
}

BOOST_AUTO_TEST_CASE(a_sum_takes_the_faster_of_two_ways) {
  const link_speed link{10e-6, 1e9};
  BOOST_TEST(sum_of(1000, 1, link).s == 0.0);
  // Few bytes to each: one latency, three times 1000 bytes.
  const auto few = sum_of(1000, 4, link);
  BOOST_TEST(few.s == 10e-6 + 3e-6, tolerance(1e-9));
  BOOST_TEST(few.bytes_sent == 3000);
  // Many in parts: two latencies, twice three quarters.
  const auto many = sum_of(1e6, 4, link);
  BOOST_TEST(many.s == 2 * (10e-6 + 750e-6), tolerance(1e-9));
  BOOST_TEST(many.bytes_sent == 1.5e6);
}

BOOST_AUTO_TEST_CASE(groups_sum_twice_a_layer_and_gather_candidates_or_whole_rows) {
  small_scenario small;
  small.hosts = 4;
  small.pipeline = small.tensor = 2;
  small.rack_us = 10;
  small.rack_gb_per_s = 1;
  const auto cluster = forecast_of(small).cluster;
  const auto step = rows_at(0, 3, 0);
  const auto each = sum_of(3 * 64 * 4, 2, {10e-6, 1e9});
  BOOST_TEST(group_cost(cluster, 0, step).s == 9 * each.s, tolerance(1e-9)); // and the embedding
  const auto last = group_cost(cluster, 1, step);
  BOOST_TEST(last.s == 8 * each.s + 10e-6 + 128 * 4 / 1e9, tolerance(1e-9));
  BOOST_TEST(last.bytes_sent == 8 * each.bytes_sent + 128 * 4, tolerance(1e-9));
  const auto greedy = group_cost(cluster, 1, rows_at(0, 3, 1));
  BOOST_TEST(greedy.s == 8 * each.s + 10e-6 + 8 / 1e9, tolerance(1e-9));
  BOOST_TEST(greedy.bytes_sent == 8 * each.bytes_sent + 8, tolerance(1e-9));
  auto both = step; // a gather of each kind
  add_output(both, 40);
  BOOST_TEST(group_cost(cluster, 1, both).s == last.s + 10e-6 + 40 * 8 / 1e9, tolerance(1e-9));
  // The plan counts the same: what a row sums, and what it gathers.
  BOOST_TEST(each.bytes_sent * 9 == 3 * cluster.plan.ranks.front().reduce_row_bytes);
}

BOOST_AUTO_TEST_CASE(one_rank_chooses_from_whole_rows_and_each_finds_its_candidates) {
  small_scenario small;
  small.hosts = small.tensor = 2;
  const auto cluster = forecast_of(small).cluster;
  const auto added = [&](std::size_t tensor, std::size_t candidates) {
    auto dearer = cluster;
    for (auto& host : dearer.hosts)
      host.logit_s += 1e-6;
    const auto step = rows_at(0, 1, candidates);
    const auto& rank = cluster.plan.ranks[tensor];
    return rank_work(dearer, rank, step).one_s - rank_work(cluster, rank, step).one_s;
  };
  BOOST_TEST(added(0, 0) == 256e-6, tolerance(1e-6));
  BOOST_TEST(added(1, 0) == 0);
  BOOST_TEST(added(0, 1) == 128e-6, tolerance(1e-6));
  BOOST_TEST(added(1, 1) == 128e-6, tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(a_boundary_is_the_rows_and_a_header) {
  small_scenario small;
  small.hosts = small.pipeline = 2;
  small.rack_us = 30;
  small.rack_gb_per_s = 0.1;
  const auto cluster = forecast_of(small).cluster;
  const auto bytes = 5 * 64 * 4 + transport::wire_header_bytes;
  BOOST_TEST(boundary_bytes(cluster, rows_at(0, 5, 1)) == bytes);
  BOOST_TEST(boundary_time(cluster, 0, rows_at(0, 5, 1)).seconds() == 30e-6 + bytes / 0.1e9,
             tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(distances_follow_processes_hosts_and_racks) {
  forecast_cluster cluster;
  cluster.nodes = {{0, 0, 1}, {0, 0, 1}, {1, 0, 1}, {2, 1, 1}};
  BOOST_CHECK(cluster.between(0, 0) == distance::process);
  BOOST_CHECK(cluster.between(0, 1) == distance::host);
  BOOST_CHECK(cluster.between(1, 2) == distance::rack);
  BOOST_CHECK(cluster.between(2, 3) == distance::across);
}
