// A walk of faults by seed, with eight clients: no request is lost, no token is wrong, and when it
// is over nothing is left behind.
//
//   fault_walk                                three seeds of 20 s, what CI asks for
//   fault_walk -- seconds=600 seed=7          a long one
//   fault_walk -- ... page=docs/faults.md     ... whose result is written there

#include "tests/fault/walk.hpp"
#include "tests/support/page_part.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string told(unsigned seed, std::chrono::seconds time, const walk_result& got) {
  std::string faults;
  for (const auto& [name, count] : got.faults)
    faults += fmt::format("{}{} {}", faults.empty() ? "" : ", ", count, name);
  return fmt::format(
    "Seed {}, {}, {} s: {} faults ({}); {} epochs; {} processes. {} requests were answered with "
    "the "
    "tokens of an unharmed run, {} of them in spite of at least one fault; {} failed by a value "
    "that "
    "was no number, as ordered; {} were refused with the reason while nodes were away, and asked "
    "again; **lost: {}, wrong: {}**. At the end: {}.\n",
    seed,
    got.shape,
    time.count(),
    got.all_faults(),
    faults,
    got.epochs,
    got.processes,
    got.answered,
    got.disturbed,
    got.spoilt,
    got.refused,
    got.lost,
    got.wrong,
    got.leftovers);
}

walk_result check_walk(unsigned seed, std::chrono::seconds time) {
  const auto got = walk_of_faults(seed, time);
  BOOST_TEST_MESSAGE(told(seed, time, got));
  BOOST_TEST(got.lost == 0u);
  BOOST_TEST(got.wrong == 0u);
  BOOST_TEST(got.answered > 0u);
  BOOST_TEST(got.all_faults() > 0u);
  return got;
}

} // namespace

BOOST_AUTO_TEST_CASE(no_request_is_lost_on_a_walk_of_faults) {
  if (const auto seconds = test_option("seconds")) {
    const std::chrono::seconds time{std::stol(*seconds)};
    const auto seed = static_cast<unsigned>(std::stoul(test_option("seed").value_or("1")));
    const auto got = check_walk(seed, time);
    if (const auto page = test_option("page"))
      write_page_part(*page, "walk", told(seed, time, got));
    return;
  }
  for (const unsigned seed : {1, 2, 3})
    BOOST_TEST_CONTEXT("seed " << seed)
  check_walk(seed, std::chrono::seconds{14}); // and some seconds to start and to look
}
