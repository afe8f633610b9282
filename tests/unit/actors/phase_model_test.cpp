// The three state tables together, explored in full: whatever the order of messages and wherever a
// bounded number of faults falls, nobody waits for ever, no message is held for ever, nothing is
// refused that was sent in order, and no step is committed twice.

#include "tests/unit/actors/phase_model.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::tests;

namespace {

void check_all(const model_limits& limits) {
  const auto found = explore(limits);
  BOOST_TEST_MESSAGE(limits.ranks << " ranks, " << int{limits.steps} << " steps, "
                                  << int{limits.faults} << " faults: " << found.worlds
                                  << " worlds, " << found.transitions << " transitions");
  for (const auto& rule : found.broken)
    BOOST_ERROR(rule);
  BOOST_TEST(found.goals > 0u);
  BOOST_TEST(found.worlds > 100u);
}

} // namespace

BOOST_AUTO_TEST_CASE(processes_that_start_without_a_fault) {
  check_all({2, 2, 0});
  check_all({3, 2, 0});
}

BOOST_AUTO_TEST_CASE(two_processes_that_start_and_one_fault) {
  check_all({2, 1, 1});
}

BOOST_AUTO_TEST_CASE(two_ranks_that_serve_and_one_fault) {
  check_all({2, 2, 1, true});
}

BOOST_AUTO_TEST_CASE(three_ranks_that_serve_and_one_fault) {
  check_all({3, 1, 1, true});
}
