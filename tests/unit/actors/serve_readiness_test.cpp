// When the cluster counts as ready, and whom the answer names when it does not.

#include "actors/rank/rank_phases.hpp"
#include "actors/serve/readiness.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;
using serve::readiness;

namespace {

cluster_status serving_status(rank_phase phase = rank_phase::ready, std::uint64_t progress = 1) {
  cluster_status known;
  known.phase = "serving";
  for (std::uint32_t i = 0; i < 2; ++i) {
    rank_status rank;
    rank.gauge.rank = static_cast<rank_id>(i);
    rank.gauge.phase = static_cast<std::uint8_t>(i == 1 ? phase : rank_phase::awaiting_input);
    rank.gauge.progress = i == 1 ? progress : 1;
    rank.stage = i;
    rank.node = i == 0 ? "a" : "b";
    known.ranks.push_back(rank);
  }
  return known;
}

const readiness::time_point start = std::chrono::steady_clock::now();

} // namespace

BOOST_AUTO_TEST_CASE(it_is_red_until_the_cluster_serves_and_says_since_when) {
  readiness judged(1000ms, start);
  BOOST_TEST(!judged.ready());
  cluster_status known;
  known.phase = "gathering";
  known.reason = "waiting for node 'b'";
  judged.hear(known, start + 1s);
  BOOST_TEST(judged.reason() == "the cluster is gathering: waiting for node 'b'");
  BOOST_TEST((judged.since(start + 3s) == 3000ms));
  judged.hear(serving_status(), start + 4s);
  BOOST_TEST(judged.ready());
  BOOST_TEST((judged.since(start + 5s) == 1000ms));
}

BOOST_AUTO_TEST_CASE(a_rank_that_computes_without_progress_is_named_with_its_stage) {
  readiness judged(1000ms, start);
  judged.hear(serving_status(rank_phase::in_group, 5), start);
  judged.hear(serving_status(rank_phase::in_group, 5), start + 900ms);
  BOOST_TEST(judged.ready());
  judged.hear(serving_status(rank_phase::in_group, 6), start + 1500ms);
  BOOST_TEST(judged.ready());
  judged.hear(serving_status(rank_phase::in_group, 6), start + 2600ms);
  BOOST_TEST(judged.reason()
             == "stage 1, rank 1 on node 'b' has made no progress in step 0 for 1100 ms");
  judged.hear(serving_status(rank_phase::in_group, 7), start + 2700ms);
  BOOST_TEST(judged.ready());
}

BOOST_AUTO_TEST_CASE(a_rank_that_waits_is_not_in_the_way) {
  readiness judged(1000ms, start);
  judged.hear(serving_status(), start);
  judged.hear(serving_status(), start + 60s);
  BOOST_TEST(judged.ready());
}

BOOST_AUTO_TEST_CASE(a_node_that_says_nothing_is_named) {
  readiness judged(1000ms, start);
  auto known = serving_status();
  known.ranks[1].silent_ms = 1200;
  judged.hear(known, start);
  BOOST_TEST(judged.reason() == "stage 1, rank 1 on node 'b' has been silent for 1200 ms");
}

BOOST_AUTO_TEST_CASE(a_director_that_does_not_answer_makes_it_red) {
  readiness judged(1000ms, start);
  judged.hear(serving_status(), start);
  judged.miss(start + 100ms, start + 900ms);
  BOOST_TEST(judged.ready());
  judged.miss(start + 100ms, start + 1200ms);
  BOOST_TEST(judged.reason() == "the director has not answered for 1000 ms");
}
