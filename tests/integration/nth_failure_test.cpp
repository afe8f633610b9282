// The n-th call fails, for n = 1, 2, 3 ... until no call is left to fail: each time the step is
// committed in the end, with the tokens that it would have had, or the start ends with its reason.

#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr int most_calls = 60;

const served_model& small_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 2;
    return wanted;
  }()};
  return model;
}

cluster_shape two_stages(const std::string& more) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 2;
  shape.more = "[deadlines]\nprogress_ms = 2000\nstep_ms = 8000\n" + more;
  return shape;
}

const std::vector<std::string> request{token_prompt({1, 2, 3}, 3)};

const std::vector<told_answer>& expected() {
  static const auto answers = cluster{two_stages({})}.generate(request);
  return answers;
}

void check_same(const std::vector<told_answer>& found) {
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].digests == expected()[0].digests, boost::test_tools::per_element());
}

} // namespace

BOOST_AUTO_TEST_CASE(E35_the_nth_call_of_the_wires_fails_until_none_is_left) {
  for (const std::string where : {"rank 0", "rank 1", "conductor"}) {
    int recovered = 0;
    bool none_left = false;
    for (int n = 1; n < most_calls && !none_left; ++n)
      BOOST_TEST_CONTEXT(where << " call " << n) {
        const cluster faulty{two_stages("[[fault]]\nwhat = \"fail_transport\"\nwhere = \"" + where
                                        + "\"\nwhen = \"call " + std::to_string(n) + "\"\n")};
        const auto told = faulty.try_generate(request, {"--log"});
        BOOST_TEST(told.code == 0, told.all());
        check_same(read_answers(told.lines));
        none_left = told.mentions("never happened"); // said at the end, when all calls were made
        recovered += none_left ? 0 : 1;
      }
    BOOST_TEST_MESSAGE(where << ": " << recovered << " calls failed, one at a time");
    BOOST_TEST(none_left);
    BOOST_TEST(recovered > 3);
  }
}

BOOST_AUTO_TEST_CASE(the_nth_allocation_fails_until_none_is_left) {
  for (const std::string where : {"rank 0", "rank 1"}) {
    int refused = 0;
    int recovered = 0;
    bool none_left = false;
    for (int n = 1; n < most_calls && !none_left; ++n)
      BOOST_TEST_CONTEXT(where << " call " << n) {
        const cluster faulty{two_stages("[[fault]]\nwhat = \"refuse_allocation\"\nwhere = \""
                                        + where + "\"\nwhen = \"call " + std::to_string(n)
                                        + "\"\n")};
        const auto told = faulty.try_generate(request, {"--log"});
        none_left = told.mentions("never happened");
        if (told.code == 0) {
          check_same(read_answers(told.lines));
          recovered += none_left ? 0 : 1;
          continue;
        }
        BOOST_TEST(told.code == 4, told.all());
        BOOST_TEST(told.mentions("was refused on purpose"), told.all());
        ++refused;
      }
    BOOST_TEST_MESSAGE(where << ": " << refused << " starts refused, " << recovered
                             << " passes done again");
    BOOST_TEST(none_left);
    BOOST_TEST(refused > 3);
    BOOST_TEST(recovered > 0);
  }
}
