// Candidates: the selection against a full sort, and the choice from them against whole logits.

#include "compute/sampler.hpp"
#include "config/topology.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::compute;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The best `count` as the definition has them: a full sort, then by id.
std::vector<token_id> best_by_definition(const std::vector<float>& logits, std::size_t count) {
  std::vector<token_id> order(logits.size());
  std::iota(order.begin(), order.end(), token_id{0});
  std::stable_sort(
    order.begin(), order.end(), [&](token_id a, token_id b) { return logits[a] > logits[b]; });
  order.resize(std::min(count, order.size()));
  std::sort(order.begin(), order.end());
  return order;
}

void expect_best(const std::vector<float>& logits, std::size_t count) {
  const auto found = find_candidates(logits, count);
  BOOST_TEST(found.ids == best_by_definition(logits, count), boost::test_tools::per_element());
  BOOST_REQUIRE(found.logits.size() == found.ids.size());
  for (std::size_t i = 0; i < found.ids.size(); ++i)
    BOOST_TEST(found.logits[i] == logits[found.ids[i]]);
}

/// Normal, or of few values only, so that there are ties everywhere; some may be masked.
std::vector<float> random_logits(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 3);
  const bool coarse = random() % 2 == 0;
  const auto masked_of_8 = random() % 4 == 0 ? random() % 8 : 0;
  std::vector<float> logits(count);
  for (float& logit : logits) {
    logit = normal(random);
    if (coarse)
      logit = std::round(logit) * (random() % 2 == 0 ? 1.0f : -1.0f); // and zeros of both signs
    if (random() % 8 < masked_of_8)
      logit = -infinity;
  }
  return logits;
}

/// What the members of a group bring together: of each part its best.
token_candidates
of_parts(const std::vector<float>& logits, std::size_t members, std::size_t count) {
  token_candidates all;
  for (std::size_t member = 0; member < members; ++member) {
    const auto part = split_part(logits.size(), members, member);
    const auto best = find_candidates(std::span(logits).subspan(part.begin, part.size()), count);
    for (std::size_t i = 0; i < best.ids.size(); ++i) {
      all.ids.push_back(static_cast<token_id>(part.begin) + best.ids[i]);
      all.logits.push_back(best.logits[i]);
    }
  }
  return all;
}

sampling random_wish(std::mt19937& random) {
  std::uniform_real_distribution<float> unit(0, 1);
  sampling wish;
  wish.with_logprob = false;
  wish.temperature = random() % 4 == 0 ? 0.0f : 0.05f + 3 * unit(random);
  wish.top_k = 1 + random() % (random() % 2 == 0 ? most_candidates : 5);
  wish.top_p = random() % 2 == 0 ? 1.0f : unit(random);
  wish.min_p = random() % 2 == 0 ? 0.0f : unit(random) * unit(random);
  wish.seed = random();
  return wish;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_best_are_those_of_a_full_sort) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const auto logits = random_logits(1 + random() % 700, random);
    for (const std::size_t count : {1, 2, 7, 40, 64})
      expect_best(logits, count);
  }
}

BOOST_AUTO_TEST_CASE(every_place_in_a_long_row_is_looked_at) {
  for (const std::size_t size : {1, 63, 64, 65, 128, 129, 1000})
    for (std::size_t at = 0; at < size; ++at) {
      std::vector<float> logits(size, -1.0f);
      logits[at] = 2;
      BOOST_TEST(find_candidates(logits, 1).ids.front() == at);
    }
  std::vector<float> rising(500);
  std::iota(rising.begin(), rising.end(), -100.0f); // each is better than all before
  expect_best(rising, 1);
  expect_best(rising, 64);
  std::reverse(rising.begin(), rising.end());
  expect_best(rising, 64);
}

BOOST_AUTO_TEST_CASE(G05_of_equal_logits_the_lowest_ids_are_the_best) {
  expect_best(std::vector<float>(300, 5.0f), 3);
  BOOST_TEST(find_candidates(std::vector<float>{-0.0f, 0.0f, 0.0f}, 1).ids.front() == 0u);
  BOOST_TEST(find_candidates(std::vector<float>{1, 7, 3, 7, 7}, 2).ids
               == (std::vector<token_id>{1, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(masked_tokens_come_last_and_a_short_part_brings_all) {
  expect_best({-infinity, 4, -infinity, 3}, 3);
  expect_best(std::vector<float>(5, -infinity), 2);
  expect_best({2, 1}, 64);
  BOOST_TEST(find_candidates({}, 3).empty());
  BOOST_TEST(find_candidates(std::vector<float>{1, 2}, 0).empty());
}

BOOST_AUTO_TEST_CASE(candidates_of_all_parts_give_the_token_of_whole_logits) {
  std::mt19937 random(2);
  std::size_t compared = 0;
  for (int round = 0; round < 6000; ++round) {
    auto logits = random_logits(1 + random() % (round % 8 == 0 ? 3000 : 300), random);
    if (*std::max_element(logits.begin(), logits.end()) == -infinity)
      continue; // nothing to choose
    const auto wish = random_wish(random);
    const auto count = candidates_for(wish);
    BOOST_REQUIRE(count == (wish.temperature == 0 ? 1 : wish.top_k));
    const auto members = 1 + random() % std::min<std::size_t>(6, logits.size());
    const auto position = random();
    const auto from_few = sample(of_parts(logits, members, count), wish, position);
    const auto from_all = sample(logits, wish, {}, position);
    BOOST_REQUIRE(from_few);
    BOOST_REQUIRE(from_all);
    BOOST_REQUIRE_MESSAGE(from_few->token == from_all->token,
                          "round " << round << ": " << from_few->token << " of " << members
                                   << " parts, " << from_all->token << " of " << logits.size());
    ++compared;
  }
  BOOST_TEST(compared > 5500u);
}

BOOST_AUTO_TEST_CASE(candidates_suffice_where_nothing_else_looks_at_logits) {
  sampling greedy;
  greedy.with_logprob = false;
  BOOST_TEST(candidates_for(greedy) == 1u);
  greedy.top_k = 200; // plays no role
  BOOST_TEST(candidates_for(greedy) == 1u);
  auto few = greedy;
  few.temperature = 0.8f;
  for (const auto& [top_k, enough] : {std::pair{1, 1}, {40, 40}, {64, 64}, {65, 0}, {0, 0}}) {
    few.top_k = static_cast<std::uint32_t>(top_k);
    few.top_p = 0.5f;
    few.min_p = 0.1f;
    BOOST_TEST(candidates_for(few) == static_cast<std::uint32_t>(enough));
  }
  auto odds = greedy;
  odds.with_logprob = true;
  auto repeated = greedy, frequent = greedy, present = greedy;
  repeated.repetition_penalty = 1.1f;
  frequent.frequency_penalty = 0.1f;
  present.presence_penalty = -0.1f;
  for (const auto& wish : {odds, repeated, frequent, present}) {
    BOOST_TEST(candidates_for(wish) == 0u);
    const auto refused = sample({{3}, {1.0f}}, wish, 12);
    BOOST_REQUIRE(!refused);
    BOOST_TEST((refused.error().code == errc::contract_violation));
    BOOST_TEST(refused.error().what.find("position 12 needs whole logits") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(G01_candidates_that_are_no_numbers_are_an_error_with_their_id) {
  sampling wish;
  wish.with_logprob = false;
  const auto nan = sample({{3, 900}, {1.0f, std::nanf("")}}, wish, 12);
  BOOST_REQUIRE(!nan);
  BOOST_TEST((nan.error().code == errc::compute_error));
  BOOST_TEST(nan.error().what.find("token 900 at position 12 is nan") != std::string::npos);
  BOOST_TEST((sample(token_candidates{}, wish, 0).error().code == errc::invalid_argument));
}
