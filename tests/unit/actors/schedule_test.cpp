#include "tests/unit/actors/schedule_driver.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <numeric>

using namespace troupe;
using namespace troupe::actors;
using tests::ids;
using tests::ids_of;
using tests::roomy;
using tests::schedule_driver;
using tests::submit;
using tests::wish;

namespace {

error refused(schedule_driver& driver, sequence_wish what) {
  const auto done = driver.work().submit(std::move(what));
  BOOST_REQUIRE(!done);
  return done.error();
}

bool says(const error& what, const char* part) {
  return what.what.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(rule_39_steps_count_from_one_and_an_aborted_one_is_used_up) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 3, 4));
  BOOST_TEST(number(driver.plan()->plan.step) == 1u);
  driver.commit(7);
  BOOST_TEST(number(driver.plan()->plan.step) == 2u);
  driver.work().clear(); // step 2 never comes back
  driver.forget();
  submit(driver, wish(2, 3, 4));
  BOOST_TEST(number(driver.plan()->plan.step) == 3u);
}

BOOST_AUTO_TEST_CASE(rule_39_nothing_is_planned_beyond_the_steps_in_flight) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 40, 4)); // three chunks
  BOOST_TEST(driver.plan().has_value());
  BOOST_TEST(!driver.plan().has_value());
  driver.commit(0);
  BOOST_TEST(driver.plan().has_value());
}

BOOST_AUTO_TEST_CASE(prompts_are_cut_into_chunks_and_only_the_last_one_gives_a_token) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 40, 2));
  std::vector<token_id> fed;
  for (const std::size_t rows : {16, 16, 8}) {
    const auto step = driver.plan();
    BOOST_REQUIRE(step);
    BOOST_TEST(step->tokens.size() == rows);
    fed.insert(fed.end(), step->tokens.begin(), step->tokens.end());
    BOOST_TEST(driver.commit(5).size() == (rows == 8 ? 1u : 0u));
  }
  BOOST_TEST(fed == wish(1, 40, 2).prompt, boost::test_tools::per_element());
  const auto decode = driver.plan();
  BOOST_REQUIRE(decode);
  BOOST_TEST(decode->tokens == std::vector<token_id>{5}, boost::test_tools::per_element());
  BOOST_TEST(decode->plan.entries.front().position == 40u);
  const auto last = driver.commit(6);
  BOOST_REQUIRE(last.size() == 1u);
  BOOST_TEST((last[0].ended == sequence_end::length));
  BOOST_TEST(!driver.plan().has_value());
}

BOOST_AUTO_TEST_CASE(requests_join_and_leave_at_step_borders) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 2, 3));
  BOOST_TEST(ids_of(driver.turn(9)) == ids{1}, boost::test_tools::per_element());
  submit(driver, wish(2, 5, 2));
  for (int token = 0; token < 2; ++token) {
    auto given = ids_of(driver.turn(9));
    std::sort(given.begin(), given.end()); // who comes first takes turns
    BOOST_TEST(given == (ids{1, 2}), boost::test_tools::per_element());
  }
  BOOST_TEST(driver.turn(9).empty());
  BOOST_TEST(driver.work().running() == 0u);
}

BOOST_AUTO_TEST_CASE(prompt_chunks_ride_along_and_decoding_goes_on) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 2, 20));
  driver.turn(9);
  submit(driver, wish(2, 64, 1));
  for (int step = 0; step < 4; ++step) {
    const auto planned = driver.plan();
    BOOST_REQUIRE(planned);
    BOOST_TEST(planned->plan.entries.size() == 2u);
    BOOST_TEST(planned->tokens.size() == 17u); // the answer's row and a chunk
    BOOST_TEST(!driver.commit(9).empty());
  }
}

BOOST_AUTO_TEST_CASE(steps_in_flight_share_the_sequences_so_that_no_stage_idles) {
  auto limits = roomy;
  limits.micro_batches = 2;
  schedule_driver driver(limits);
  for (std::uint64_t id = 1; id <= 4; ++id)
    submit(driver, wish(id, 1, 50));
  for (int step = 0; step < 8; ++step) // the prompts
    driver.turn(9);
  for (int round = 0; round < 10; ++round) {
    const auto first = driver.plan();
    const auto second = driver.plan();
    BOOST_REQUIRE((first && second));
    BOOST_TEST(first->tokens.size() == 2u);
    BOOST_TEST(second->tokens.size() == 2u);
    driver.commit(9);
    driver.commit(9);
  }
}

BOOST_AUTO_TEST_CASE(one_prompt_fills_the_pipeline_with_its_chunks) {
  auto limits = roomy;
  limits.micro_batches = 3;
  schedule_driver driver(limits);
  submit(driver, wish(1, 48, 2));
  for (int chunk = 0; chunk < 3; ++chunk)
    BOOST_TEST(driver.plan().has_value());
  BOOST_TEST(driver.commit(1).empty());
  BOOST_TEST(!driver.plan().has_value()); // the token that comes next is not known yet
  BOOST_TEST(driver.commit(1).empty());
  BOOST_TEST(driver.commit(1).size() == 1u);
  BOOST_TEST(driver.plan().has_value());
}

BOOST_AUTO_TEST_CASE(several_prompts_are_dealt_to_the_steps_in_flight) {
  struct dealing {
    std::size_t in_flight;
    std::size_t prompt; // Tokens of each of four.
    std::size_t first;  // Rows of the first step; the later ones have no more.
    std::size_t steps;
  };

  for (const auto& wanted : {dealing{1, 16, 64, 1},      // nobody idles: all at once
                             dealing{2, 16, 16, 4},      // a chunk each
                             dealing{2, 64, 32, 14},     // an eighth, and less as less is left
                             dealing{2, 256, 64, 26}}) { // what waits fills whole steps
    auto limits = roomy;
    limits.micro_batches = wanted.in_flight;
    schedule_driver driver(limits);
    for (std::uint64_t id = 1; id <= 4; ++id)
      submit(driver, wish(id, wanted.prompt, 1));
    std::vector<std::size_t> rows;
    while (const auto step = driver.plan()) {
      rows.push_back(step->tokens.size());
      if (driver.steps_in_flight() == wanted.in_flight)
        driver.commit(7);
    }
    BOOST_TEST(rows.front() == wanted.first);
    BOOST_TEST(std::is_sorted(rows.rbegin(), rows.rend()));
    BOOST_TEST(rows.size() <= wanted.steps);
    BOOST_TEST(std::accumulate(rows.begin(), rows.end(), std::size_t{0}) == 4 * wanted.prompt);
  }
}

BOOST_AUTO_TEST_CASE(fairness_more_sequences_than_rows_take_turns) {
  auto limits = roomy;
  limits.max_rows = 3;
  schedule_driver driver(limits);
  for (std::uint64_t id = 1; id <= 4; ++id)
    submit(driver, wish(id, 1, 200));
  std::map<std::uint64_t, int> tokens;
  for (int step = 0; step < 100; ++step)
    for (const auto& given : driver.turn(9))
      ++tokens[number(given.id)];
  BOOST_TEST(tokens.size() == 4u);
  for (const auto& [id, count] : tokens)
    BOOST_TEST((count >= 70 && count <= 80), "request " << id << " got " << count << " of 300");
}

BOOST_AUTO_TEST_CASE(fairness_answers_that_fill_every_step_leave_a_row_to_prompts) {
  for (const std::size_t rows : {1, 2, 4}) {
    auto limits = roomy;
    limits.max_rows = rows;
    schedule_driver driver(limits);
    for (std::uint64_t id = 1; id <= 3; ++id)
      submit(driver, wish(id, 1, 500));
    for (int step = 0; step < 20; ++step)
      driver.turn(9);
    submit(driver, wish(4, 10, 1));
    bool answered = false;
    for (int step = 0; step < 30; ++step)
      for (const auto& given : driver.turn(9))
        answered = answered || number(given.id) == 4;
    BOOST_TEST(answered,
               "a prompt of 10 tokens starves beside answers, " << rows << " rows a step");
  }
}

BOOST_AUTO_TEST_CASE(pages_are_reserved_for_the_whole_answer_and_given_back) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 30, 40)); // 70 positions: 3 pages
  driver.turn(9);
  BOOST_TEST(driver.work().pages().used() == 3u);
  for (int step = 0; step < 60; ++step)
    driver.turn(9);
  BOOST_TEST(driver.work().pages().used() == 0u);
  BOOST_TEST(driver.slots_held() == 1u); // the ranks do not know yet
  driver.tell_idle_releases();
  BOOST_TEST(driver.slots_held() == 0u);
  BOOST_TEST(driver.work().take_idle_releases().empty());
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_waits_in_order) {
  auto limits = roomy;
  limits.pages = 4;
  schedule_driver driver(limits);
  submit(driver, wish(1, 60, 4)); // 2 pages
  submit(driver, wish(2, 90, 6)); // 3 pages: must wait
  submit(driver, wish(3, 10, 4)); // would fit, but does not overtake
  driver.turn(9);
  BOOST_TEST(driver.work().running() == 1u);
  BOOST_TEST(driver.work().waiting() == 2u);
  while (driver.work().running() == 1 && driver.work().waiting() == 2)
    driver.turn(9);
  driver.plan();
  BOOST_TEST(driver.work().waiting() == 0u); // 3 pages and 1
}

BOOST_AUTO_TEST_CASE(requests_that_can_never_run_are_refused_with_numbers) {
  schedule_driver driver(roomy);
  BOOST_TEST(says(refused(driver, wish(1, 0, 4)), "no tokens"));
  BOOST_TEST(says(refused(driver, wish(1, 4, 0)), "at least 1"));
  const auto long_one = refused(driver, wish(1, 1024, 1));
  BOOST_TEST(to_string(long_one.code) == to_string(errc::invalid_argument));
  BOOST_TEST(says(long_one, "1024 tokens"));
  auto limits = roomy;
  limits.pages = 2;
  schedule_driver small(limits);
  const auto large = refused(small, wish(1, 60, 5));
  BOOST_TEST(says(large, "3 pages"));
  BOOST_TEST(says(large, "64 tokens fit"));
  BOOST_TEST(!driver.plan().has_value());
}

BOOST_AUTO_TEST_CASE(an_answer_ends_where_the_context_ends) {
  auto limits = roomy;
  limits.context = 10;
  schedule_driver driver(limits);
  submit(driver, wish(1, 8, 1000));
  BOOST_TEST((driver.turn(9).front().ended == sequence_end::none));
  BOOST_TEST((driver.turn(9).front().ended == sequence_end::length));
}

BOOST_AUTO_TEST_CASE(a_full_queue_is_overloaded) {
  auto limits = roomy;
  limits.max_queue = 2;
  limits.max_sequences = 1;
  schedule_driver driver(limits);
  for (unsigned id = 1; id <= 3; ++id) // one starts, two wait
    submit(driver, wish(id, 1, 1));
  const auto why = refused(driver, wish(4, 1, 1));
  BOOST_TEST(to_string(why.code) == to_string(errc::overloaded));
  driver.turn(9);
  submit(driver, wish(4, 1, 1));
}

BOOST_AUTO_TEST_CASE(A09_without_a_queue_what_can_start_at_once_is_taken) {
  auto limits = roomy;
  limits.max_queue = 0;
  limits.max_sequences = 2;
  schedule_driver driver(limits);
  submit(driver, wish(1, 1, 1));
  submit(driver, wish(2, 1, 1));
  BOOST_TEST(to_string(refused(driver, wish(3, 1, 1)).code) == to_string(errc::overloaded));
}

BOOST_AUTO_TEST_CASE(rule_52_any_of_the_end_tokens_ends_a_sequence) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 1, 50, {2, 5}));
  BOOST_TEST((driver.turn(3).front().ended == sequence_end::none));
  const auto last = driver.turn(5);
  BOOST_REQUIRE(last.size() == 1u);
  BOOST_TEST(last[0].token == 5u);
  BOOST_TEST((last[0].ended == sequence_end::end_token));
  BOOST_TEST(driver.work().running() == 0u);
  submit(driver, wish(2, 1, 50)); // without end tokens 5 is a token like others
  BOOST_TEST((driver.turn(5).front().ended == sequence_end::none));
}

BOOST_AUTO_TEST_CASE(rule_61_a_failed_row_ends_its_own_request_only) {
  schedule_driver driver(roomy);
  submit(driver, wish(1, 1, 50));
  submit(driver, wish(2, 1, 50));
  BOOST_REQUIRE(driver.plan());
  auto output = driver.answer(9);
  BOOST_REQUIRE(output.choices.size() == 2u);
  output.choices[0].code = static_cast<std::uint8_t>(errc::compute_error) + 1;
  const auto given = driver.work().commit(output);
  BOOST_REQUIRE(given);
  BOOST_TEST(((*given)[0].ended == sequence_end::failed));
  BOOST_TEST((*given)[0].code == static_cast<std::uint8_t>(errc::compute_error));
  BOOST_TEST(((*given)[1].ended == sequence_end::none));
  BOOST_TEST(ids_of(driver.turn(9)) == ids{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(D03_a_queued_request_that_leaves_does_not_touch_the_running_one) {
  auto limits = roomy;
  limits.max_sequences = 1;
  schedule_driver driver(limits);
  submit(driver, wish(1, 3, 6));
  driver.turn(9);
  submit(driver, wish(2, 3, 6));
  submit(driver, wish(3, 3, 1));
  BOOST_TEST(driver.work().cancel(request_id{2}));
  BOOST_TEST(!driver.work().cancel(request_id{2}));
  for (int token = 0; token < 5; ++token)
    BOOST_TEST(ids_of(driver.turn(9)) == ids{1}, boost::test_tools::per_element());
  BOOST_TEST(ids_of(driver.turn(9)) == ids{3}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(D01_a_running_request_that_leaves_frees_its_slot_after_the_steps_in_flight) {
  auto limits = roomy;
  limits.micro_batches = 2;
  schedule_driver driver(limits);
  submit(driver, wish(1, 32, 100));
  submit(driver, wish(2, 1, 100));
  driver.plan();
  driver.plan();
  BOOST_TEST(driver.work().cancel(request_id{1}));
  BOOST_TEST(driver.work().running() == 2u); // two of its steps are under way
  driver.commit(9);
  BOOST_TEST(driver.work().running() == 2u);
  for (const auto& given : driver.commit(9))
    BOOST_TEST(number(given.id) == 2u);
  BOOST_TEST(driver.work().running() == 1u);
  const auto next = driver.plan();
  BOOST_REQUIRE(next);
  BOOST_TEST(next->plan.released.size() == 1u); // told with the very next step
  BOOST_TEST(next->plan.entries.size() == 1u);
  BOOST_TEST(!driver.work().cancel(request_id{1}));
}

BOOST_AUTO_TEST_CASE(a_request_cancelled_before_its_first_step_was_never_told_to_the_ranks) {
  auto limits = roomy;
  limits.max_rows = 16;
  schedule_driver driver(limits);
  submit(driver, wish(1, 16, 4));
  submit(driver, wish(2, 16, 4)); // admitted, but there is no room for its rows
  driver.plan();
  BOOST_TEST(driver.work().running() == 2u);
  BOOST_TEST(driver.work().cancel(request_id{2}));
  BOOST_TEST(driver.work().running() == 1u);
  driver.commit(9);
  BOOST_TEST(driver.plan()->plan.released.empty());
}

BOOST_AUTO_TEST_CASE(rule_60_an_output_that_is_not_due_is_refused) {
  const auto try_commit = [](auto change) {
    schedule_driver driver(roomy);
    submit(driver, wish(1, 1, 50));
    submit(driver, wish(2, 1, 50));
    driver.plan();
    auto output = driver.answer(9);
    change(output);
    const auto given = driver.work().commit(output);
    BOOST_REQUIRE(!given);
    BOOST_TEST(to_string(given.error().code) == to_string(errc::contract_violation));
    // Whatever was wrong, both requests can be told.
    BOOST_TEST(driver.work().clear().size() == 2u);
    return given.error();
  };
  BOOST_TEST(says(try_commit([](step_output& o) { o.step = step_id{7}; }), "step 7 arrived"));
  BOOST_TEST(says(try_commit([](step_output& o) { o.choices.pop_back(); }), "has 1 tokens"));
  BOOST_TEST(says(try_commit([](step_output& o) { o.choices[0].slot = slot_id{3}; }), "slot 3"));
  BOOST_TEST(
    says(try_commit([](step_output& o) { std::swap(o.choices[0], o.choices[1]); }), "was due"));
  schedule_driver idle(roomy);
  BOOST_TEST(!idle.work().commit(step_output{}));
}

BOOST_AUTO_TEST_CASE(clear_withdraws_everything_in_order_of_arrival) {
  schedule_driver driver(roomy);
  for (std::uint64_t id = 1; id <= 6; ++id) // four run, two wait
    submit(driver, wish(id, 2, 1 + id));
  driver.turn(9);
  driver.plan();
  driver.work().cancel(request_id{3});
  std::vector<std::uint64_t> cleared;
  for (const auto id : driver.work().clear())
    cleared.push_back(number(id));
  BOOST_TEST(cleared == (ids{1, 2, 4, 5, 6}), boost::test_tools::per_element());
  BOOST_TEST(driver.work().pages().used() == 0u);
  BOOST_TEST(driver.work().running() == 0u);
  BOOST_TEST(driver.work().waiting() == 0u);
  BOOST_TEST(driver.work().steps_in_flight() == 0u);
}

BOOST_AUTO_TEST_CASE(sampling_wishes_travel_with_the_row_that_needs_them) {
  schedule_driver driver(roomy);
  auto what = wish(1, 20, 3);
  what.sampling.repetition_penalty = 1.5f;
  what.with_digests = true;
  submit(driver, std::move(what));
  const auto chunk = driver.plan()->plan.entries.front();
  BOOST_TEST(!chunk.has(step_entry::wants_output));
  BOOST_TEST(chunk.history.empty());
  driver.commit(9);
  const auto last = driver.plan()->plan.entries.front();
  BOOST_TEST(last.has(step_entry::wants_digest));
  BOOST_TEST(last.history.size() == 20u);
  driver.commit(9);
  BOOST_TEST(driver.plan()->plan.entries.front().history.back() == 9u);
}

BOOST_AUTO_TEST_CASE(rules_come_with_the_first_rows_of_a_slot_and_again_in_a_new_epoch) {
  schedule_driver driver(roomy);
  auto asked = wish(1, 40, 4);
  asked.rules = answer_rules{};
  asked.rules->top_logprobs = 3;
  asked.rules->schema = "{}";
  asked.with_logprobs = true;
  submit(driver, asked);
  submit(driver, wish(2, 2, 4));
  auto rules_of = [](const next_step& step, std::size_t at) {
    return step.plan.entries.at(at).rules;
  };
  auto step = driver.plan();
  BOOST_REQUIRE(step);
  BOOST_REQUIRE(rules_of(*step, 0).size() == 1u);
  BOOST_TEST(rules_of(*step, 0).front().top_logprobs == 3u);
  BOOST_TEST(rules_of(*step, 0).front().so_far.empty());
  BOOST_TEST(rules_of(*step, 1).empty());
  BOOST_TEST(!step->plan.entries[1].has(step_entry::wants_logprob));
  driver.commit(5);
  driver.turn(6);
  driver.turn(7); // the prompt of 40 is through: its first token is a 7
  step = driver.plan();
  BOOST_REQUIRE(step);
  for (const auto& entry : step->plan.entries) {
    BOOST_TEST(entry.rules.empty());
    BOOST_TEST(entry.has(step_entry::wants_logprob) == (entry.position >= 40));
  }
  driver.interrupt(1, {}); // that step's tokens were never committed
  step = driver.plan();
  BOOST_REQUIRE(step);
  std::size_t told = 0;
  for (const auto& entry : step->plan.entries)
    for (const auto& one : entry.rules) {
      ++told;
      BOOST_TEST(one.so_far == std::vector<token_id>{7}, boost::test_tools::per_element());
    }
  BOOST_TEST(told == 1u);
}
