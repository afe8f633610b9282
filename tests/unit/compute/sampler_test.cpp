#include "compute/sampler.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::compute;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

choice chosen(std::vector<float> logits,
              const sampling& wish = {},
              std::vector<token_id> history = {},
              std::uint64_t position = 0) {
  auto made = sample(logits, wish, history, position);
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return *made;
}

error refusal(std::vector<float> logits, const sampling& wish = {}) {
  auto made = sample(logits, wish, {}, 12);
  BOOST_REQUIRE(!made);
  return made.error();
}

sampling at_temperature(float temperature) {
  sampling wish;
  wish.temperature = temperature;
  return wish;
}

/// The filters by full sorts, as the definition has them.
std::vector<bool> kept_by_definition(const std::vector<float>& logits, const sampling& wish) {
  std::vector<token_id> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(
    order.begin(), order.end(), [&](token_id a, token_id b) { return logits[a] > logits[b]; });
  std::size_t count =
    wish.top_k == 0 ? order.size() : std::min<std::size_t>(wish.top_k, order.size());
  auto weight = [&](token_id id) {
    return std::exp((double{logits[id]} - double{logits[order[0]]}) / double{wish.temperature});
  };
  double total = 0, sum = 0;
  for (std::size_t at = 0; at < count; ++at)
    total += weight(order[at]);
  for (std::size_t at = 0; at < count; ++at) {
    sum += weight(order[at]);
    if (sum >= double{wish.top_p} * total) {
      count = at + 1;
      break;
    }
  }
  std::vector<bool> kept(logits.size());
  for (std::size_t at = 0; at < count; ++at)
    kept[order[at]] = weight(order[at]) >= double{wish.min_p};
  return kept;
}

std::vector<float> random_logits(std::size_t count, unsigned seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits)
    logit = normal(random);
  return logits;
}

} // namespace

BOOST_AUTO_TEST_CASE(G05_equal_logits_give_the_lowest_id) {
  BOOST_TEST(chosen({1, 7, 3, 7, 7}).token == 1u);
  BOOST_TEST(chosen({-infinity, 0, -0.0f, 0}).token == 1u);
  sampling one = at_temperature(1);
  one.top_k = 1;
  one.seed = 99;
  BOOST_TEST(chosen({1, 7, 3, 7, 7}, one).token == 1u);
  one.top_k = 0;
  one.top_p = 0;
  BOOST_TEST(chosen({1, 7, 3, 7, 7}, one).token == 1u);
}

BOOST_AUTO_TEST_CASE(G05_ties_at_the_edge_of_a_filter_keep_the_lowest_ids) {
  sampling wish = at_temperature(1);
  for (bool by_mass : {false, true}) {
    wish.top_k = by_mass ? 0 : 2;
    wish.top_p = by_mass ? 0.39f : 1.f; // two of five equal ones
    std::map<token_id, int> seen;
    for (std::uint64_t position = 0; position < 200; ++position)
      ++seen[chosen({5, 5, 5, 5, 5}, wish, {}, position).token];
    BOOST_TEST(seen.size() == 2u);
    BOOST_TEST(seen.rbegin()->first == 1u);
  }
}

BOOST_AUTO_TEST_CASE(G01_a_logit_that_is_not_a_number_is_an_error_and_no_token) {
  for (float temperature : {0.f, 1.f}) {
    auto nan = refusal({0, 1, std::nanf(""), 2}, at_temperature(temperature));
    BOOST_TEST((nan.code == errc::compute_error));
    BOOST_TEST(nan.what.find("token 2 at position 12 is nan") != std::string::npos);
    auto huge = refusal({0, infinity}, at_temperature(temperature));
    BOOST_TEST((huge.code == errc::compute_error));
    BOOST_TEST(huge.what.find("token 1 at position 12 is inf") != std::string::npos);
    auto none = refusal({-infinity, -infinity}, at_temperature(temperature));
    BOOST_TEST((none.code == errc::compute_error));
    BOOST_TEST(none.what.find("all 2 logits") != std::string::npos);
    BOOST_TEST((refusal({}).code == errc::invalid_argument));
  }
}

BOOST_AUTO_TEST_CASE(masked_tokens_are_never_drawn) {
  for (std::uint64_t position = 0; position < 300; ++position)
    BOOST_TEST(chosen({-infinity, 1, -infinity, 2}, at_temperature(100), {}, position).token % 2
               == 1);
}

BOOST_AUTO_TEST_CASE(the_generator_is_philox) {
  // The known answers of Random123's kat_vectors for philox4x32-10.
  using words = std::array<std::uint32_t, 4>;
  constexpr std::uint32_t all = 0xffffffff;
  BOOST_TEST(
    (philox({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  BOOST_TEST((philox({all, all, all, all}, {all, all})
              == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})
              == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(a_draw_depends_on_seed_and_position_alone) {
  auto logits = random_logits(1000, 3);
  sampling wish = at_temperature(1);
  wish.seed = 5;
  std::vector<token_id> first, again, other;
  for (std::uint64_t position = 0; position < 64; ++position)
    first.push_back(chosen(logits, wish, {}, position).token);
  for (std::uint64_t position = 64; position-- > 0;)
    again.insert(again.begin(), chosen(logits, wish, {}, position).token);
  BOOST_TEST(first == again, boost::test_tools::per_element());
  wish.seed = 6;
  for (std::uint64_t position = 0; position < 64; ++position)
    other.push_back(chosen(logits, wish, {}, position).token);
  BOOST_TEST((first != other));
}

BOOST_AUTO_TEST_CASE(tokens_are_drawn_as_often_as_their_probability_says) {
  // 0.5, 0.25, 0.125, 0.125 at temperature 1; squared and normalised at 0.5.
  std::vector<float> logits = {std::log(4.f), std::log(2.f), 0, 0};
  for (auto [temperature, expected] :
       {std::pair{1.f, std::array{.5, .25, .125, .125}},
        std::pair{.5f, std::array{16 / 22., 4 / 22., 1 / 22., 1 / 22.}}}) {
    std::array<double, 4> found{};
    constexpr int draws = 20000;
    for (std::uint64_t position = 0; position < draws; ++position)
      found[chosen(logits, at_temperature(temperature), {}, position).token] += 1.0 / draws;
    for (std::size_t id = 0; id < 4; ++id)
      BOOST_TEST(std::abs(found[id] - expected[id]) < 0.015); // more than 4 standard deviations
  }
}

BOOST_AUTO_TEST_CASE(filters_keep_what_their_definition_keeps) {
  std::mt19937 random(11);
  for (unsigned round = 0; round < 60; ++round) {
    auto logits = random_logits(200, round, 1 + static_cast<float>(round % 4));
    for (std::size_t at = 0; at < 40; ++at) // ties
      logits[random() % 200] = logits[random() % 200];
    sampling wish = at_temperature(0.5f + static_cast<float>(round % 3));
    wish.top_k = std::array{0u, 1u, 7u, 24u, 60u, 500u}[round % 6];
    wish.top_p = std::array{1.f, 0.9f, 0.5f, 0.05f}[round % 4];
    wish.min_p = std::array{0.f, 0.02f, 0.3f}[round / 6 % 3];
    auto kept = kept_by_definition(logits, wish);
    std::vector<bool> seen(200);
    for (std::uint64_t position = 0; position < 3000; ++position)
      seen[chosen(logits, wish, {}, position).token] = true;
    double likeliest_unseen = 0;
    for (std::size_t id = 0; id < 200; ++id) {
      BOOST_TEST((!seen[id] || kept[id]), "round " << round << ": token " << id << " is not kept");
      if (kept[id] && !seen[id])
        likeliest_unseen =
          std::max(likeliest_unseen,
                   std::exp(double{logits[id] - *std::max_element(logits.begin(), logits.end())}
                            / double{wish.temperature}));
    }
    // What is kept is drawn, unless it is too rare to show in 3000 draws among 200 tokens.
    BOOST_TEST(likeliest_unseen < 0.5);
  }
}

BOOST_AUTO_TEST_CASE(penalties_follow_their_formulas) {
  sampling wish;
  wish.repetition_penalty = 2;
  BOOST_TEST(chosen({4, 3, -1}, wish, {0}).token == 1u);   // 4 / 2 < 3
  BOOST_TEST(chosen({-2, -3}, wish, {0, 0}).token == 1u);  // -2 * 2 < -3, once for two occurrences
  BOOST_TEST(chosen({4, 3}, wish, {9, 9999}).token == 0u); // not in the vocabulary
  wish = {};
  wish.frequency_penalty = 0.5f;
  BOOST_TEST(chosen({4, 3}, wish, {0, 0}).token == 0u);    // 4 - 1 = 3: a tie
  BOOST_TEST(chosen({4, 3}, wish, {0, 0, 0}).token == 1u); // 4 - 1.5
  wish = {};
  wish.presence_penalty = 1.5f;
  BOOST_TEST(chosen({4, 3}, wish, {0}).token == 1u);
  BOOST_TEST(chosen({4, 3}, wish, {1}).token == 0u);
}

BOOST_AUTO_TEST_CASE(the_logprob_is_that_of_the_model) {
  sampling wish;
  wish.repetition_penalty = 100;
  auto logits = random_logits(777, 1);
  auto made = chosen(logits, wish, {5, 6, 7});
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double{logit});
  BOOST_TEST(std::abs(double{made.logprob} - (double{logits[made.token]} - std::log(sum))) < 1e-5);
  wish.presence_penalty = -2; // favours what was seen: the logprob is that before the penalty
  wish.repetition_penalty = 1e-3f;
  made = chosen({3, 1, 2}, wish, {1});
  BOOST_TEST(made.token == 1u);
  BOOST_TEST(
    std::abs(double{made.logprob} - (1 - std::log(std::exp(3.) + std::exp(1.) + std::exp(2.))))
    < 1e-6);
  wish.with_logprob = false;
  BOOST_TEST(chosen({3, 1, 2}, wish, {1}).logprob == 0.f);
}

BOOST_AUTO_TEST_CASE(extreme_but_valid_wishes_give_a_token) {
  auto logits = random_logits(100, 8, 1e4f);
  auto best =
    static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  BOOST_TEST(chosen(logits, at_temperature(1e-45f)).token == best);
  BOOST_TEST(chosen(logits, at_temperature(std::numeric_limits<float>::max())).token < 100u);
  sampling wish = at_temperature(1);
  wish.min_p = 1;
  BOOST_TEST(chosen(logits, wish).token == best);
  constexpr float most = std::numeric_limits<float>::max();
  BOOST_TEST(chosen({-most, most}, at_temperature(1)).token == 1u);
}

BOOST_AUTO_TEST_CASE(a_wish_out_of_range_is_refused_by_field_value_and_range) {
  auto refuses = [](sampling wish, const std::string& field) {
    auto valid = validate(wish);
    BOOST_REQUIRE(!valid);
    BOOST_TEST((valid.error().code == errc::invalid_argument));
    BOOST_TEST(valid.error().what.starts_with(field + " is "));
    BOOST_TEST(valid.error().what.find("must be") != std::string::npos);
    BOOST_TEST((refusal({1, 2}, wish).code == errc::invalid_argument));
  };
  BOOST_TEST(bool(validate({})));
  for (float bad : {-1.f, std::nanf(""), infinity}) {
    refuses({.temperature = bad}, "temperature");
    refuses({.top_p = bad}, "top_p");
    refuses({.min_p = bad}, "min_p");
    refuses({.repetition_penalty = bad}, "repetition_penalty");
    refuses({.frequency_penalty = bad * 3}, "frequency_penalty");
    refuses({.presence_penalty = bad * 3}, "presence_penalty");
  }
  refuses({.repetition_penalty = 0}, "repetition_penalty");
  refuses({.top_p = 1.01f}, "top_p");
}
