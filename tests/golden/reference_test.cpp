// Token ids and logits equal those of the reference implementation, for every family and variant.

#include "tests/golden/fixture.hpp"
#include "tests/support/stage_grid.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr float tolerance = 1e-4f;

} // namespace

BOOST_DATA_TEST_CASE(logits_of_the_prompt_equal_the_reference, fixture_names(), name) {
  const auto expected = read_fixture(name);
  stage_grid grid(expected.model);
  growing_text text(expected.prompt, 0);
  const auto found = run_prompt(grid, text, 1);
  BOOST_REQUIRE(found.size() == expected.prompt_logits.size());
  float worst = 0;
  for (std::size_t row = 0; row < found.size(); ++row)
    worst = std::max(worst, relative_error(found[row], expected.prompt_logits[row]));
  BOOST_TEST_MESSAGE(name << ": largest relative error " << worst);
  BOOST_TEST(worst <= tolerance);
}

BOOST_DATA_TEST_CASE(greedy_ids_over_64_tokens_equal_the_reference, fixture_names(), name) {
  const auto expected = read_fixture(name);
  stage_grid grid(expected.model);
  const auto found = run_greedy(grid, expected.prompt, 64, expected.ids.size());
  BOOST_TEST(found.ids == expected.ids, boost::test_tools::per_element());
  for (std::size_t i = 0; i < expected.steps.size(); ++i)
    BOOST_TEST(relative_error(found.logits[expected.steps[i]], expected.step_logits[i])
               <= tolerance);
}
