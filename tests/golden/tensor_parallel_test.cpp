// Tensor-parallel groups of any size, alone and together with pipeline stages: the same ids as one
// rank, logits within 1e-5 (a split reorders sums), the same bits for a given width.

#include "compute/sampler.hpp"
#include "tests/golden/fixture.hpp"
#include "tests/support/stage_grid.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr float tolerance = 1e-5f;

void expect_equal(const greedy_run& found, const greedy_run& expected, const std::string& shape) {
  BOOST_TEST_CONTEXT(shape) {
    BOOST_TEST(found.ids == expected.ids, boost::test_tools::per_element());
    float worst = 0;
    for (std::size_t i = 0; i < found.logits.size(); ++i)
      worst = std::max(worst, relative_error(found.logits[i], expected.logits[i]));
    BOOST_TEST_MESSAGE(shape << ": largest relative error " << worst);
    BOOST_TEST(worst <= tolerance);
  }
}

/// Decodes with the sampler, from candidates where the group exchanges them and `few` allows it.
std::vector<token_id> run_chosen(stage_grid& grid,
                                 const std::vector<token_id>& prompt,
                                 compute::sampling wish,
                                 bool few,
                                 std::size_t count) {
  wish.with_logprob = false;
  growing_text text(prompt, 0);
  std::vector<token_id> chosen;
  while (chosen.size() < count) {
    compute::batch rows;
    std::vector<token_id> tokens;
    text.add_rows(text.waiting(), rows, tokens);
    rows.sequences.front().candidates = few ? compute::candidates_for(wish) : 0;
    const auto output = grid.run(rows, tokens);
    const auto position = text.tokens().size();
    const auto made = output.candidates.front().empty()
                        ? compute::sample(output.logits.as<float>(), wish, {}, position)
                        : compute::sample(output.candidates.front(), wish, position);
    BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
    chosen.push_back(made->token);
    text.append(made->token);
  }
  return chosen;
}

} // namespace

// stage_grid requires the same bits on every rank of a stage: hidden values and complete logits.
BOOST_DATA_TEST_CASE(rule_24_and_32_F08_B19_tensor_sizes_1_to_6_equal_one_rank,
                     fixture_names(),
                     name) {
  const auto expected = read_fixture(name);
  constexpr std::size_t new_tokens = 12;
  stage_grid whole(expected.model);
  const auto one = run_greedy(whole, expected.prompt, 64, new_tokens);
  const auto most = std::min<std::size_t>(6, expected.model->max_tensor_size());
  for (std::size_t size = 2; size <= most; ++size) {
    stage_grid grid(expected.model, {.tensor = size});
    expect_equal(
      run_greedy(grid, expected.prompt, 64, new_tokens), one, std::to_string(size) + " ranks");
  }
}

BOOST_DATA_TEST_CASE(F08_stages_of_tensor_groups_equal_one_rank, fixture_names(), name) {
  const auto expected = read_fixture(name);
  constexpr std::size_t new_tokens = 12;
  stage_grid whole(expected.model);
  const auto one = run_greedy(whole, expected.prompt, 64, new_tokens);
  for (const auto& [stages, size] : {std::pair{2, 2}, {2, 3}, {3, 2}}) {
    if (static_cast<std::size_t>(stages) > expected.model->shape().layers)
      continue;
    stage_grid grid(
      expected.model,
      {.stages = static_cast<std::size_t>(stages), .tensor = static_cast<std::size_t>(size)});
    expect_equal(run_greedy(grid, expected.prompt, 64, new_tokens),
                 one,
                 std::to_string(stages) + " x " + std::to_string(size));
  }
}

BOOST_AUTO_TEST_CASE(A03_fewer_kv_heads_than_ranks_are_replicated) {
  const std::vector<token_id> prompt{7, 200, 3, 99, 12, 41, 8};
  for (const std::size_t kv_heads : {1, 2}) {
    const tiny_model model({.layers = 3, .heads = 8, .kv_heads = kv_heads, .seed = 3});
    const auto source = model.open();
    stage_grid whole(source);
    stage_grid grid(source, {.tensor = 4});
    expect_equal(run_greedy(grid, prompt, 64, 20),
                 run_greedy(whole, prompt, 64, 20),
                 std::to_string(kv_heads) + " kv heads on 4 ranks");
    const compute::partition_record third{
      .units = {0, 3}, .owns_input = true, .owns_output = true, .tensor_rank = 2, .tensor_size = 4};
    const auto shard = source->describe(third, dtype::f32);
    BOOST_REQUIRE(shard);
    BOOST_TEST((shard->heads == range{4, 6}));
    BOOST_TEST((shard->kv_heads == (kv_heads == 1 ? range{0, 1} : range{1, 2})));
  }
}

BOOST_AUTO_TEST_CASE(thirteen_heads_on_three_ranks_share_their_border_kv_heads) {
  const std::vector<token_id> prompt{7, 200, 3, 99, 12};
  const tiny_model model({.layers = 2,
                          .hidden = 48,
                          .heads = 26,
                          .kv_heads = 2,
                          .head_dim = 6,
                          .ffn = 35,
                          .vocabulary = 211,
                          .biases = true,
                          .seed = 13});
  const auto source = model.open();
  stage_grid whole(source);
  for (const std::size_t size : {3, 5}) {
    stage_grid grid(source, {.tensor = size});
    expect_equal(run_greedy(grid, prompt, 64, 20),
                 run_greedy(whole, prompt, 64, 20),
                 std::to_string(size) + " ranks");
  }
}

BOOST_AUTO_TEST_CASE(a_given_width_gives_the_same_bits_every_time) {
  const tiny_model model({.layers = 3, .heads = 6, .kv_heads = 3, .head_dim = 10, .seed = 4});
  const std::vector<token_id> prompt{7, 200, 3, 99, 12};
  stage_grid first(model.open(), {.tensor = 3});
  stage_grid second(model.open(), {.stages = 3, .tensor = 3});
  BOOST_TEST(
    (run_greedy(first, prompt, 64, 20).logits == run_greedy(second, prompt, 2, 20).logits));
}

BOOST_AUTO_TEST_CASE(a_step_costs_two_all_reduces_a_layer) {
  constexpr std::size_t layers = 4;
  const tiny_model model({.layers = layers, .seed = 6});
  stage_grid grid(model.open(), {.stages = 2, .tensor = 2});
  growing_text text({1, 2, 3, 4, 5}, 0);
  run_prompt(grid, text, 64);                                  // one step
  BOOST_TEST(grid.counts(0).all_reduce == 2 * layers / 2 + 1); // and one for the lookup
  BOOST_TEST(grid.counts(0).all_gather == 0u);
  BOOST_TEST(grid.counts(1).all_reduce == 2 * layers / 2);
  BOOST_TEST(grid.counts(1).all_gather == 1u); // the logits
}

BOOST_DATA_TEST_CASE(rule_32_candidates_give_the_greedy_tokens_of_one_rank, fixture_names(), name) {
  const auto expected = read_fixture(name);
  constexpr std::size_t new_tokens = 12;
  stage_grid whole(expected.model);
  const auto one = run_greedy(whole, expected.prompt, 64, new_tokens).ids;
  const auto most = std::min<std::size_t>(6, expected.model->max_tensor_size());
  for (std::size_t size = 2; size <= most; ++size) {
    stage_grid grid(expected.model, {.tensor = size});
    BOOST_TEST(run_chosen(grid, expected.prompt, {}, true, new_tokens) == one,
               boost::test_tools::per_element());
    BOOST_TEST(grid.counts(0).gathered_bytes == new_tokens * size * compute::candidate_bytes);
  }
}

BOOST_DATA_TEST_CASE(rule_32_candidates_give_the_drawn_tokens_of_whole_logits,
                     fixture_names(),
                     name) {
  const auto expected = read_fixture(name);
  constexpr std::size_t new_tokens = 24;
  stage_grid whole(expected.model);
  stage_grid pair(expected.model, {.tensor = 2});
  stage_grid staged(expected.model, {.stages = 2, .tensor = 2});
  for (const std::uint32_t top_k : {1, 5, 64})
    for (const float top_p : {1.0f, 0.7f}) {
      compute::sampling wish{.temperature = 1.5f, .top_k = top_k, .top_p = top_p, .min_p = 0.01f};
      wish.seed = 7 * top_k;
      const auto one = run_chosen(whole, expected.prompt, wish, true, new_tokens);
      const auto gathered = run_chosen(pair, expected.prompt, wish, false, new_tokens);
      const auto exchanged = run_chosen(pair, expected.prompt, wish, true, new_tokens);
      BOOST_TEST(exchanged == gathered, boost::test_tools::per_element());
      BOOST_TEST(exchanged == one, boost::test_tools::per_element());
      BOOST_TEST(run_chosen(staged, expected.prompt, wish, true, new_tokens) == one,
                 boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(rows_of_a_step_ask_for_whole_logits_or_candidates_each_for_itself) {
  const tiny_model model({.layers = 3, .heads = 6, .kv_heads = 3, .head_dim = 10, .seed = 4});
  stage_grid grid(model.open(), {.stages = 2, .tensor = 3});
  const std::vector<std::vector<token_id>> prompts{{7, 200, 3}, {99, 12}, {41, 8, 5, 1}, {17}};
  const std::vector<std::uint32_t> candidates{1, 0, 9, 0};
  compute::batch rows;
  std::vector<token_id> tokens;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    growing_text(prompts[i], static_cast<std::uint32_t>(i))
      .add_rows(prompts[i].size(), rows, tokens);
    rows.sequences.back().candidates = candidates[i];
  }
  const auto before = grid.counts(1).gathered_bytes;
  const auto mixed = grid.run(rows, tokens);
  BOOST_TEST(grid.counts(1).gathered_bytes - before
             == 2 * grid.vocabulary() * sizeof(float) + 3 * (1 + 9) * compute::candidate_bytes);
  auto next = mixed.logits.as<float>();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    growing_text alone(prompts[i], 8);
    const auto logits = run_prompt(grid, alone, 64).back();
    if (candidates[i] == 0) {
      BOOST_TEST(mixed.candidates[i].empty());
      BOOST_TEST(std::equal(logits.begin(), logits.end(), next.begin()));
      next = next.subspan(logits.size());
      continue;
    }
    const auto& found = mixed.candidates[i];
    BOOST_TEST(found.ids.size() == 3 * candidates[i]);
    for (std::size_t at = 0; at < found.ids.size(); ++at)
      BOOST_TEST(found.logits[at] == logits[found.ids[at]]);
    const auto best = compute::find_candidates(logits, candidates[i]);
    BOOST_TEST(std::includes(found.ids.begin(), found.ids.end(), best.ids.begin(), best.ids.end()));
  }
  BOOST_TEST(next.empty());
}
