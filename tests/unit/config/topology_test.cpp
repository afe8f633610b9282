#include "config/topology.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;

namespace {

std::vector<std::size_t> sizes(std::size_t count, std::size_t parts) {
  std::vector<std::size_t> found;
  auto ranges = split_evenly(count, parts);
  BOOST_REQUIRE(ranges);
  for (const auto& part : *ranges)
    found.push_back(part.size());
  return found;
}

rank_id rank(std::uint32_t index) {
  return static_cast<rank_id>(index);
}

} // namespace

BOOST_AUTO_TEST_CASE(rule_02_and_65_remainder_goes_to_the_first_owners) {
  using list = std::vector<std::size_t>;
  BOOST_TEST(sizes(10, 3) == (list{4, 3, 3}), boost::test_tools::per_element());
  BOOST_TEST(sizes(7, 3) == (list{3, 2, 2}), boost::test_tools::per_element());
  BOOST_TEST(sizes(12, 4) == (list{3, 3, 3, 3}), boost::test_tools::per_element());
  BOOST_TEST(sizes(100, 7) == (list{15, 15, 14, 14, 14, 14, 14}), boost::test_tools::per_element());
  BOOST_TEST(sizes(5, 5) == (list{1, 1, 1, 1, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rule_02_an_empty_part_is_an_error_that_names_the_counts) {
  auto ranges = split_evenly(2, 3);
  BOOST_REQUIRE(!ranges);
  BOOST_TEST(ranges.error().what.find("2 units into 3 parts") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rule_02_parts_are_contiguous_and_cover_everything) {
  for (std::size_t count = 1; count < 40; ++count) {
    for (std::size_t parts = 1; parts <= count; ++parts) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const auto part = split_part(count, parts, i);
        BOOST_TEST(part.begin == next);
        next = part.end;
      }
      BOOST_TEST(next == count);
    }
  }
}

BOOST_AUTO_TEST_CASE(rule_01_rank_numbering) {
  auto map = topology::make_numbering({.data = 1, .pipeline = 2, .tensor = 2, .expert = 2});
  BOOST_REQUIRE(map);
  auto where = map->locate(rank(5));
  BOOST_REQUIRE(where);
  BOOST_TEST((*where == coordinates{0, 1, 0, 1}));
  BOOST_TEST((map->tensor_peers(rank(5)) == std::vector{rank(5), rank(7)}));
  BOOST_TEST((map->expert_peers(rank(5)) == std::vector{rank(4), rank(5)}));
  BOOST_TEST((map->pipeline_peers(rank(5)) == std::vector{rank(1), rank(5)}));
  for (std::uint32_t i = 0; i < map->world(); ++i)
    BOOST_TEST((map->rank_at(*map->locate(rank(i))) == rank(i)));
}

BOOST_AUTO_TEST_CASE(rule_01_axes_are_positive_and_their_product_fits) {
  BOOST_TEST(!topology::make({.pipeline = 0}));
  BOOST_TEST(!topology::make({.pipeline = 1u << 20, .tensor = 1u << 20}));
  auto refused = topology::make({.data = 2});
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::unsupported));
}

BOOST_AUTO_TEST_CASE(rule_66_a_rank_outside_of_the_world_is_an_error) {
  auto map = topology::make({.pipeline = 2, .tensor = 2});
  BOOST_REQUIRE(map);
  BOOST_TEST(map->locate(rank(3)).has_value());
  BOOST_TEST(!map->locate(rank(4)));
}
