// What only some requests ask of the sampler: biases, masks, the most probable tokens, and a draw
// of its own for each answer to a prompt.

#include "compute/sampler.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <random>
#include <set>

using namespace troupe;
using namespace troupe::compute;

namespace {

std::vector<float> random_logits(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> made(count);
  for (auto& one : made)
    one = normal(random);
  return made;
}

choice
chosen(std::vector<float> logits, const sampling& wish, const sampling_rules& rules, int at = 0) {
  auto made = sample(logits, wish, {}, static_cast<std::uint64_t>(at), rules);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return *made;
}

double log_probability(const std::vector<float>& logits, token_id token) {
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double{logit});
  return double{logits[token]} - std::log(sum);
}

void check_refused(const sampling_rules& rules, const std::string& part) {
  auto valid = validate_rules(rules);
  BOOST_REQUIRE(!valid);
  BOOST_TEST(valid.error().what.find(part) != std::string::npos, valid.error().what);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_most_probable_tokens_are_told_with_exact_probabilities) {
  auto logits = random_logits(1000, 3);
  logits[700] = logits[20]; // a tie goes to the lower id
  sampling wish;
  wish.temperature = 2;
  wish.repetition_penalty = 3;
  sampling_rules rules;
  rules.top = 20;
  auto made = chosen(logits, wish, rules);
  BOOST_REQUIRE_EQUAL(made.top.size(), 20u);
  std::vector<token_id> order(logits.size());
  for (token_id id = 0; id < order.size(); ++id)
    order[id] = id;
  std::stable_sort(order.begin(), order.end(), [&](token_id one, token_id other) {
    return logits[one] > logits[other];
  });
  for (std::size_t at = 0; at < made.top.size(); ++at) {
    BOOST_TEST(made.top[at].token == order[at]);
    BOOST_TEST(std::abs(made.top[at].logprob - log_probability(logits, order[at])) < 1e-5);
  }
  BOOST_TEST(chosen({1, 1, 1}, {}, rules).top.size() == 3u);
  BOOST_TEST(chosen(logits, wish, {}).top.empty());
  wish.with_logprob = false; // asked for alone
  BOOST_TEST(chosen(logits, wish, rules).top.front().token == order[0]);
}

BOOST_AUTO_TEST_CASE(a_bias_moves_the_choice_and_not_the_probability_that_is_told) {
  std::vector<float> logits = {3, 1, 2, 0};
  std::vector<logit_bias> biases = {{0, -100}, {3, 4}, {9, 50}};
  sampling_rules rules;
  rules.biases = biases;
  rules.top = 1;
  auto made = chosen(logits, {}, rules);
  BOOST_TEST(made.token == 3u);
  BOOST_TEST(std::abs(made.logprob - log_probability(logits, 3)) < 1e-6);
  BOOST_TEST(made.top.front().token == 0u); // of the model's own distribution
  sampling wish;
  wish.presence_penalty = 2;
  std::vector<float> again = logits;
  auto penalised = sample(again, wish, std::vector<token_id>{3}, 0, rules);
  BOOST_REQUIRE(penalised);
  BOOST_TEST(penalised->token == 2u); // 0 + 4 - 2 is no more than 2, and ids decide
  wish.presence_penalty = 1;
  again = logits;
  penalised = sample(again, wish, std::vector<token_id>{3}, 0, rules);
  BOOST_REQUIRE(penalised);
  BOOST_TEST(penalised->token == 3u);
  BOOST_TEST(std::abs(penalised->logprob - log_probability(logits, 3)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(what_the_mask_does_not_have_is_never_chosen) {
  auto logits = random_logits(200, 5);
  std::vector<std::uint64_t> allowed(2); // tokens from 128 on have no bit at all
  for (token_id id : {3, 64, 127})
    allowed[id / 64] |= std::uint64_t{1} << (id % 64);
  sampling_rules rules;
  rules.allowed = allowed;
  sampling wish;
  wish.temperature = 5;
  std::set<token_id> seen;
  for (int at = 0; at < 500; ++at) {
    auto made = chosen(logits, wish, rules, at);
    seen.insert(made.token);
    BOOST_TEST(std::abs(made.logprob - log_probability(logits, made.token)) < 1e-5);
  }
  BOOST_TEST((seen == std::set<token_id>{3, 64, 127}));
  std::vector<std::uint64_t> none(4);
  rules.allowed = none;
  auto made = sample(logits, wish, {}, 0, rules);
  BOOST_REQUIRE(!made);
  BOOST_TEST(made.error().what.find("no token is left") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(each_stream_of_a_seed_draws_by_itself) {
  auto logits = random_logits(500, 9);
  sampling wish;
  wish.temperature = 1;
  wish.seed = 42;
  std::vector<std::vector<token_id>> answers;
  for (std::uint32_t stream = 0; stream < 8; ++stream) {
    wish.stream = stream;
    auto& answer = answers.emplace_back();
    for (int at = 0; at < 50; ++at)
      answer.push_back(chosen(logits, wish, {}, at).token);
  }
  std::set<std::vector<token_id>> distinct(answers.begin(), answers.end());
  BOOST_TEST(distinct.size() == answers.size());
  wish.stream = 5; // whatever else was asked for
  for (int at = 0; at < 50; ++at)
    BOOST_TEST(chosen(logits, wish, {}, at).token == answers[5][static_cast<std::size_t>(at)]);
}

BOOST_AUTO_TEST_CASE(rules_outside_of_their_ranges_are_refused_by_name) {
  sampling_rules rules;
  rules.top = 21;
  check_refused(rules, "top_logprobs is 21, but must be 0 ... 20");
  rules.top = 20;
  BOOST_TEST(validate_rules(rules).has_value());
  for (float bias : {-100.5f, 101.f, std::nanf("")}) {
    std::vector<logit_bias> biases = {{7, bias}};
    sampling_rules wrong;
    wrong.biases = biases;
    check_refused(wrong, "logit_bias of token 7 is");
  }
  std::vector<logit_bias> twice = {{7, 1}, {7, 2}};
  rules.biases = twice;
  check_refused(rules, "logit_bias names token 7 twice");
  std::vector<logit_bias> many;
  for (token_id id = 0; id <= sampling_rules::most_biases; ++id)
    many.push_back({id, 1});
  rules.biases = many;
  check_refused(rules, "logit_bias has 1025 tokens, but may have 1024 at most");
}
