// Frames that are lost, late, repeated, exchanged, cut and damaged between two stages: each request
// gets the tokens that it would have had, or none.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Bounds that let a lost frame be noticed soon.
const std::string soon = "[deadlines]\nprogress_ms = 2000\nstep_ms = 8000\n";

/// A fault that changes nothing: with it the wires can meet further ones at once.
const std::string armed = "[[fault]]\nwhat = \"slow\"\nwhere = \"rank 0\"\nfactor = 1\nsteps = 1\n";

cluster_shape two_stages(const std::string& more) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 2;
  shape.more = soon + more;
  return shape;
}

const std::vector<std::string> requests{token_prompt({1, 2, 3, 4, 5}, 10),
                                        token_prompt({9, 8, 7}, 10)};

const std::vector<told_answer>& expected() {
  static const auto answers = cluster{two_stages({})}.generate(requests);
  return answers;
}

void check_same(const std::vector<told_answer>& found) {
  BOOST_REQUIRE((!found.empty() && found.size() <= expected().size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    BOOST_TEST(found[i].digests == expected()[i].digests, boost::test_tools::per_element());
}

outcome inject(const cluster& where, std::vector<std::string> more) {
  more.insert(more.begin(), {"inject", "FILE"});
  auto told = where.run(more);
  BOOST_TEST(told.code == 0, told.all());
  return told;
}

} // namespace

BOOST_AUTO_TEST_CASE(E34_no_token_comes_from_frames_that_were_not_what_was_sent) {
  const cluster faulty{two_stages(armed)};
  const serving_cluster serving{faulty};
  for (const std::string what :
       {"drop", "duplicate", "delay", "reorder", "truncate", "corrupt", "cut"})
    for (const std::string where :
         {"rank 0 -> rank 1", "rank 1 -> conductor", "conductor -> rank 1"})
      BOOST_TEST_CONTEXT(what << " " << where) {
        inject(faulty, {"--what", what, "--where", where, "--when", "message 4", "--steps", "1"});
        check_same(faulty.generate(requests));
      }
}

BOOST_AUTO_TEST_CASE(E35_a_send_that_fails_at_any_message_ends_no_request) {
  const cluster faulty{two_stages(armed)};
  const serving_cluster serving{faulty};
  for (const std::string where : {"rank 0", "rank 1", "conductor"})
    for (int n = 1; n <= 16; n += n < 4 ? 1 : 4)
      BOOST_TEST_CONTEXT(where << " call " << n) {
        inject(
          faulty,
          {"--what", "fail_transport", "--where", where, "--when", "message " + std::to_string(n)});
        // One: a second may come while there is no epoch, and would be refused with the reason.
        check_same(faulty.generate({requests[0]}));
      }
}

BOOST_AUTO_TEST_CASE(E24_a_link_that_is_cut_in_both_directions_is_noticed_and_made_anew) {
  const cluster faulty{two_stages("[[fault]]\nwhat = \"cut\"\nwhere = \"rank 0 <-> rank 1\"\n"
                                  "when = \"step 5\"\nsteps = 1\n")};
  const auto begin = std::chrono::steady_clock::now();
  check_same(faulty.generate(requests));
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)));
}

BOOST_AUTO_TEST_CASE(E21_a_slow_stage_is_seen_in_its_counters) {
  const cluster faulty{
    two_stages("[[fault]]\nwhat = \"slow\"\nwhere = \"rank 1\"\nfactor = 200\n")};
  const serving_cluster serving{faulty};
  check_same(faulty.generate(requests));
  const auto gauges = serving.gauges();
  BOOST_REQUIRE(gauges.size() == 2u);
  BOOST_TEST(gauges[1].at("compute_ns") > 3 * gauges[0].at("compute_ns"));
}

BOOST_AUTO_TEST_CASE(A09_without_a_digest_damage_is_not_noticed) {
  const std::string damage = "[[fault]]\nwhat = \"corrupt\"\nwhere = \"rank 0 -> rank 1\"\n"
                             "when = \"message 2\"\nseed = 30\n"; // The exponent of a number.
  const auto told = cluster{two_stages(damage)}.try_generate(requests, {"--log"});
  BOOST_TEST(told.mentions("is damaged"), told.all());
  check_same(read_answers(told.lines));
  const auto careless = cluster{two_stages(damage)}.try_generate(
    requests, {"--log", "--set", "parallel.frame_digest=false"});
  BOOST_TEST(!careless.mentions("is damaged"), careless.all());
  const auto answers = read_answers(careless.lines);
  BOOST_REQUIRE(!answers.empty());
  BOOST_TEST(
    (answers[0].digests != expected()[0].digests || answers[1].digests != expected()[1].digests));
}
