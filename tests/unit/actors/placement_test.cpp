#include "actors/director/placement.hpp"

#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::actors;

namespace {

using nodes = std::vector<std::size_t>;

cluster_settings settings_of(const std::string& parallel, const std::string& more) {
  auto settings =
    parse_cluster_text("[model]\npath = \"demo\"\n[parallel]\n" + parallel + more, "c.toml", {});
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  return *settings;
}

std::string node(const std::string& name, const std::string& more = {}) {
  return "[[node]]\nname = \"" + name + "\"\n" + more;
}

} // namespace

BOOST_AUTO_TEST_CASE(seats_are_filled_in_the_order_of_the_file) {
  const auto settings = settings_of("pipeline = 3\n", node("a") + node("b") + node("c"));
  placement seats(settings);
  seats.refill({false, true, true});
  BOOST_TEST(!seats.full());
  BOOST_TEST(seats.holders() == (nodes{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(seats.stages() == 2u);
  seats.refill({true, true, true});
  BOOST_TEST(seats.full());
  BOOST_TEST(seats.holders() == (nodes{0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_spare_sits_where_the_lost_node_sat_and_stays) {
  const auto settings =
    settings_of("pipeline = 3\n", node("a") + node("b") + node("c") + node("s", "spare = true\n"));
  placement seats(settings);
  seats.refill({true, true, true, true});
  BOOST_TEST(seats.holders() == (nodes{0, 1, 2}), boost::test_tools::per_element());
  seats.refill({true, false, true, true});
  BOOST_TEST(seats.holders() == (nodes{0, 3, 2}), boost::test_tools::per_element());
  seats.refill({true, true, true, true}); // b is back: nothing moves
  BOOST_TEST(seats.holders() == (nodes{0, 3, 2}), boost::test_tools::per_element());
  seats.refill({true, true, true, false});
  BOOST_TEST(seats.holders() == (nodes{0, 1, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_spare_has_as_many_ranks_as_the_node_that_it_stands_in_for) {
  const auto settings =
    settings_of("pipeline = 4\n",
                node("a", "ranks = 2\n") + node("b", "ranks = 2\n") + node("s", "spare = true\n")
                  + node("t", "spare = true\nranks = 2\n"));
  placement seats(settings);
  seats.refill({true, false, true, true});
  BOOST_TEST(seats.holders() == (nodes{0, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ranks_that_make_no_whole_stage_hold_nothing) {
  const auto settings =
    settings_of("pipeline = 2\ntensor = 2\n", node("a") + node("b") + node("c") + node("d"));
  placement seats(settings);
  seats.refill({true, true, true, false});
  BOOST_TEST(seats.holders() == (nodes{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(seats.stages() == 1u);
  seats.refill({false, false, false, false});
  BOOST_TEST(seats.holders().empty());
}
