// What the schedule does after a fault: who computes again, and what goes on meanwhile.
#include "tests/unit/actors/schedule_driver.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::actors;
using tests::ids;
using tests::ids_of;
using tests::roomy;
using tests::schedule_driver;
using tests::submit;
using tests::wish;

BOOST_AUTO_TEST_CASE(rule_46_after_an_interruption_sequences_go_on_from_what_was_committed) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 20, 6)); // two chunks of at most 16
  driver.plan();
  driver.commit(0);
  driver.plan();
  BOOST_TEST(ids_of(driver.commit(41)) == (ids{1}), boost::test_tools::per_element());
  driver.plan();
  BOOST_TEST(ids_of(driver.commit(42)) == (ids{1}), boost::test_tools::per_element());
  driver.plan(); // in flight when its epoch ends
  driver.interrupt(0, {});
  BOOST_TEST(driver.work().running() == 1u);
  BOOST_TEST(driver.work().steps_in_flight() == 0u);
  const auto next = driver.plan();
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(!next->plan.replay());
  BOOST_TEST(!next->plan.entries.front().pages.empty()); // introduced again
  BOOST_TEST(next->plan.entries.front().position == 21u);
  BOOST_TEST(next->tokens == std::vector<token_id>{42}, boost::test_tools::per_element());
  for (token_id token = 43; driver.work().running() > 0; ++token) {
    driver.commit(token);
    driver.plan();
  }
  BOOST_TEST(driver.work().pages().used() == 0u);
}

namespace {

schedule_limits three_stages() {
  auto limits = roomy;
  limits.stages = 3;
  limits.micro_batches = 3;
  return limits;
}

/// A sequence of 40 committed positions, and a short one.
void fill(schedule_driver& driver) {
  submit(driver, wish(1, 40, 8));
  submit(driver, wish(2, 3, 8));
  for (int step = 0; step < 3; ++step)
    driver.turn(7);
}

std::vector<std::size_t> rows_since(const schedule_driver& driver,
                                    const std::vector<std::size_t>& before) {
  auto rows = driver.rows_run();
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] -= before[i];
  return rows;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_lost_stage_is_rebuilt_alone_and_survivors_compute_nothing_again) {
  for (const std::size_t lost : {0, 1, 2}) {
    schedule_driver driver(three_stages());
    submit(driver, wish(1, 40, 8));
    for (int chunk = 0; chunk < 3; ++chunk) {
      driver.plan();
      driver.commit(7);
    }
    driver.interrupt(3, {lost});
    const auto before = driver.rows_run();
    const auto replay = driver.plan();
    BOOST_REQUIRE(replay.has_value());
    BOOST_TEST(replay->plan.replay());
    BOOST_TEST(replay->plan.first_stage == lost);
    BOOST_TEST(replay->plan.last_stage == lost + 1);
    BOOST_TEST(replay->plan.rows() == 40u);
    BOOST_TEST(!driver.plan().has_value()); // the sequence waits for its stage
    driver.commit(0);
    std::vector<std::size_t> expected(3, 0);
    expected[lost] = 40;
    BOOST_TEST(rows_since(driver, before) == expected, boost::test_tools::per_element());
    const auto next = driver.plan();
    BOOST_REQUIRE(next.has_value());
    BOOST_TEST(!next->plan.replay());
    BOOST_TEST(next->plan.entries.front().position == 40u);
  }
}

BOOST_AUTO_TEST_CASE(E44_a_replay_may_end_before_a_step_that_was_planned_before_it) {
  auto limits = three_stages();
  limits.max_rows = 16;
  schedule_driver driver(limits);
  submit(driver, wish(1, 3, 8));
  submit(driver, wish(2, 40, 8));
  while (driver.work().running() < 2 || driver.work().steps_planned() < 6)
    driver.turn(7);
  driver.interrupt(3, {1});
  const auto first = driver.plan(); // the whole of the short one, and a part of the long one
  BOOST_REQUIRE((first && first->plan.replay()));
  driver.commit(0);
  const auto second = driver.plan();
  BOOST_REQUIRE((second && second->plan.replay()));
  const auto ordinary = driver.plan(); // of the short one, behind the replay
  BOOST_REQUIRE((ordinary && !ordinary->plan.replay()));
  driver.commit(0);
  const auto third = driver.plan();
  BOOST_REQUIRE((third && third->plan.replay()));
  // It ends on stage 1, and the step before it on stage 2.
  BOOST_TEST(third->plan.last_stage == 2u);
  BOOST_TEST(driver.work().commit({third->plan.epoch, third->plan.step, {}}).has_value());
  BOOST_TEST(driver.commit(5).size() == 1u);
}

BOOST_AUTO_TEST_CASE(neighbours_that_are_lost_together_are_rebuilt_together) {
  schedule_driver driver(three_stages());
  fill(driver);
  driver.interrupt(1, {1, 2});
  const auto replay = driver.plan();
  BOOST_REQUIRE(replay.has_value());
  BOOST_TEST(replay->plan.first_stage == 1u);
  BOOST_TEST(replay->plan.last_stage == 3u);
  BOOST_TEST(replay->plan.entries.size() == 2u);
}

BOOST_AUTO_TEST_CASE(stages_that_are_lost_apart_are_rebuilt_one_after_the_other) {
  schedule_driver driver(three_stages());
  fill(driver);
  driver.interrupt(3, {0, 2});
  const auto first = driver.plan();
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST(first->plan.first_stage == 0u);
  BOOST_TEST(first->plan.last_stage == 1u);
  BOOST_TEST(first->tokens.size() == first->plan.rows());
  driver.commit(0);
  const auto second = driver.plan();
  BOOST_REQUIRE(second.has_value());
  BOOST_TEST(second->plan.first_stage == 2u);
  BOOST_TEST(second->tokens.empty());
}

BOOST_AUTO_TEST_CASE(a_replay_that_is_interrupted_goes_on_where_it_was) {
  auto limits = three_stages();
  limits.max_rows = 16;
  schedule_driver driver(limits);
  submit(driver, wish(1, 40, 8));
  for (int chunk = 0; chunk < 3; ++chunk) {
    driver.plan();
    driver.commit(7);
  }
  driver.interrupt(3, {1});
  driver.plan();
  driver.commit(0); // 16 of 40
  driver.plan();
  driver.interrupt(2, {2}); // the second part of the replay is lost, and another stage
  auto next = driver.plan();
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(next->plan.first_stage == 2u); // it has least, and is fed with what its neighbour has
  BOOST_TEST(next->plan.rows() == 16u);
  driver.commit(0);
  next = driver.plan();
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(next->plan.first_stage == 1u);
  BOOST_TEST(next->plan.last_stage == 3u);
  BOOST_TEST(next->plan.entries.front().position == 16u);
}

BOOST_AUTO_TEST_CASE(requests_that_lost_nothing_do_not_wait_for_a_replay) {
  schedule_driver driver(three_stages());
  submit(driver, wish(1, 40, 8));
  for (int chunk = 0; chunk < 3; ++chunk) {
    driver.plan();
    driver.commit(7);
  }
  driver.interrupt(3, {1});
  submit(driver, wish(2, 3, 8));
  BOOST_TEST(driver.plan()->plan.replay());
  const auto other = driver.plan();
  BOOST_REQUIRE(other.has_value());
  BOOST_TEST(!other->plan.replay());
  BOOST_TEST(other->tokens.size() == 3u);
}

BOOST_AUTO_TEST_CASE(without_kept_rows_a_replay_begins_at_the_first_stage) {
  auto limits = three_stages();
  limits.keeps_boundaries = false;
  schedule_driver driver(limits);
  fill(driver);
  driver.interrupt(3, {1});
  const auto replay = driver.plan();
  BOOST_REQUIRE(replay.has_value());
  BOOST_TEST(replay->plan.first_stage == 0u);
  BOOST_TEST(replay->plan.last_stage == 2u);
  BOOST_TEST(replay->tokens.size() == replay->plan.rows());
}

BOOST_AUTO_TEST_CASE(an_interruption_lets_go_of_what_was_cancelled_in_flight) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 5, 6));
  driver.plan();
  BOOST_TEST(driver.work().cancel(static_cast<request_id>(1)));
  driver.interrupt(0, {0});
  BOOST_TEST(driver.work().running() == 0u);
  BOOST_TEST(driver.work().pages().used() == 0u);
  BOOST_TEST(!driver.plan().has_value());
}

BOOST_AUTO_TEST_CASE(a_plan_whose_state_moved_goes_on_where_it_was) {
  schedule_driver driver(three_stages());
  fill(driver);
  BOOST_TEST(driver.replan(2, 128, {}).empty());
  const auto next = driver.plan();
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(!next->plan.replay());
  BOOST_TEST(next->plan.rows() == 1u); // the next token of one of them
}

BOOST_AUTO_TEST_CASE(rows_that_nobody_kept_are_computed_again_from_the_first_stage_on) {
  schedule_driver driver(three_stages());
  fill(driver);
  BOOST_TEST(driver.replan(3, 128, {}).empty());
  driver.turn(7);
  driver.interrupt(3, {2}); // and the stage before it keeps only what came after the change
  const auto replay = driver.plan();
  BOOST_REQUIRE(replay.has_value());
  BOOST_TEST(replay->plan.first_stage == 0u);
  BOOST_TEST(replay->plan.last_stage == 3u);
  driver.commit(7);
  while (driver.work().running() > 0)
    driver.turn(7);
}

BOOST_AUTO_TEST_CASE(a_stage_that_got_nothing_under_a_new_plan_is_rebuilt) {
  schedule_driver driver(three_stages());
  fill(driver);
  BOOST_TEST(driver.replan(2, 128, {1}).empty());
  const auto replay = driver.plan();
  BOOST_REQUIRE(replay.has_value());
  BOOST_TEST(replay->plan.replay());
  driver.commit(7);
  while (driver.work().running() > 0)
    driver.turn(7);
}

BOOST_AUTO_TEST_CASE(pages_that_are_gone_make_a_sequence_wait_and_begin_again) {
  auto limits = three_stages();
  limits.pages = 4;
  schedule_driver driver(limits);
  submit(driver, wish(1, 40, 8)); // 2 pages
  submit(driver, wish(2, 30, 9)); // 2 pages, which are gone soon
  submit(driver, wish(3, 90, 9)); // 4 pages: waits, and never fits again
  driver.turn(7);
  driver.turn(7);
  const auto hopeless = driver.replan(2, 2, {});
  BOOST_REQUIRE(hopeless.size() == 1u);
  BOOST_TEST(number(hopeless.front()) == 3u);
  BOOST_TEST(driver.work().running() == 1u);
  BOOST_TEST(driver.work().waiting() == 1u);
  while (driver.work().running() + driver.work().waiting() > 0)
    driver.turn(7);
}
