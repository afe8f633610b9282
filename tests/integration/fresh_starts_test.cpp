// The first request after a start, again and again; many ranks that meet at once.

#include "tests/support/crew.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

const served_model& small_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 4;
    return wanted;
  }()};
  return model;
}

cluster_shape shape_of(std::size_t pipeline, std::size_t tensor) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  return shape;
}

} // namespace

BOOST_AUTO_TEST_CASE(F11_the_first_request_after_twenty_starts_of_each_shape) {
  const std::vector<std::string> request{token_prompt({1, 2, 3}, 4)};
  for (const auto& [pipeline, tensor] :
       {std::pair{2u, 1u}, std::pair{1u, 2u}, std::pair{2u, 2u}, std::pair{3u, 1u}})
    BOOST_TEST_CONTEXT(pipeline << " stages of " << tensor) {
      std::vector<std::string> first;
      for (int start = 0; start < 20; ++start) {
        const cluster fresh{shape_of(pipeline, tensor)};
        const auto answers = fresh.generate(request);
        if (first.empty())
          first = answers[0].digests;
        BOOST_TEST(answers[0].digests == first, boost::test_tools::per_element());
      }
    }
}

BOOST_AUTO_TEST_CASE(E49_sixteen_ranks_in_as_many_processes_link_at_once) {
  const std::vector<std::string> request{token_prompt({1, 2, 3}, 8)};
  // One deadline for all links of an epoch: a start that needs several attempts takes longer than
  // this test waits for.
  const cluster many{shape_of(4, 4)};
  crew nodes{many, 16};
  BOOST_TEST(nodes.serves_with(16, 30s));
  BOOST_TEST(nodes.epoch() == 1u);
  const auto found = many.generate(request);
  const auto alone = cluster{shape_of(1, 4)}.generate(request);
  BOOST_TEST(found[0].digests == alone[0].digests, boost::test_tools::per_element());
}
