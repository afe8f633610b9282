#include "actors/conductor/page_pool.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace troupe;
using namespace troupe::actors;

namespace {

std::vector<std::uint32_t> numbers(const std::vector<page_id>& pages) {
  std::vector<std::uint32_t> all;
  for (const auto page : pages)
    all.push_back(number(page));
  return all;
}

using list = std::vector<std::uint32_t>;

} // namespace

BOOST_AUTO_TEST_CASE(page_pool_hands_out_the_lowest_pages_first) {
  page_pool pool{5};
  BOOST_TEST(numbers(*pool.take(2)) == (list{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(numbers(*pool.take(1)) == list{2}, boost::test_tools::per_element());
  BOOST_TEST(pool.used() == 3u);
  BOOST_TEST(pool.available() == 2u);
}

BOOST_AUTO_TEST_CASE(page_pool_gives_all_or_nothing) {
  page_pool pool{3};
  BOOST_TEST(!pool.take(4).has_value());
  BOOST_TEST(pool.available() == 3u);
  BOOST_TEST(pool.take(3)->size() == 3u);
  BOOST_TEST(!pool.take(1).has_value());
  BOOST_TEST(pool.take(0)->empty());
}

BOOST_AUTO_TEST_CASE(page_pool_reuses_what_came_back) {
  page_pool pool{4};
  const auto first = *pool.take(2);
  const auto second = *pool.take(2);
  pool.give_back(first);
  const auto third = *pool.take(2);
  BOOST_TEST(numbers(third) == numbers(first), boost::test_tools::per_element());
  pool.give_back(second);
  pool.give_back(third);
  auto all = numbers(*pool.take(4));
  std::sort(all.begin(), all.end());
  BOOST_TEST(all == (list{0, 1, 2, 3}), boost::test_tools::per_element());
}
