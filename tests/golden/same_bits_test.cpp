// The same numbers, bit for bit, whatever the pipeline split, the chunking of a prompt, and the
// other requests of a step.

#include "tests/golden/fixture.hpp"
#include "tests/support/stage_grid.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr std::size_t new_tokens = 24;

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
  return left.size() == right.size()
         && std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

bool same_bits(const logits_rows& left, const logits_rows& right) {
  return std::equal(
    left.begin(), left.end(), right.begin(), right.end(), [](const auto& a, const auto& b) {
      return same_bits(a, b);
    });
}

/// The prompt and its greedy continuation: a longer text to cut into chunks.
std::vector<token_id> whole_text(const fixture& expected) {
  auto text = expected.prompt;
  text.insert(text.end(), expected.ids.begin(), expected.ids.end());
  return text;
}

} // namespace

BOOST_DATA_TEST_CASE(G06_E45_any_number_of_stages_gives_the_same_bits, fixture_names(), name) {
  const auto expected = read_fixture(name);
  stage_grid whole(expected.model);
  const auto one = run_greedy(whole, expected.prompt, 64, new_tokens);
  for (std::size_t stages = 2; stages <= expected.model->shape().layers; ++stages) {
    stage_grid grid(expected.model, {.stages = stages});
    const auto many = run_greedy(grid, expected.prompt, 64, new_tokens);
    BOOST_TEST(same_bits(many.logits, one.logits), stages << " stages");
  }
}

BOOST_AUTO_TEST_CASE(A05_B07_five_layers_run_on_1_2_3_4_and_5_stages_with_the_same_bits) {
  for (const bool tied : {false, true}) { // B07: the last stage has the embedding as well
    const tiny_model model({.layers = 5, .tied_head = tied, .seed = 5});
    stage_grid whole(model.open());
    const std::vector<token_id> prompt{7, 200, 3, 99, 12, 41};
    const auto one = run_greedy(whole, prompt, 4, new_tokens);
    for (std::size_t stages = 2; stages <= 5; ++stages) {
      stage_grid grid(model.open(), {.stages = stages});
      const auto many = run_greedy(grid, prompt, 4, new_tokens);
      BOOST_TEST(same_bits(many.logits, one.logits), stages << " stages, tied " << tied);
    }
  }
}

BOOST_DATA_TEST_CASE(chunks_of_a_prompt_do_not_change_a_bit, fixture_names(), name) {
  const auto expected = read_fixture(name);
  const auto tokens = whole_text(expected);
  stage_grid grid(expected.model);
  growing_text alone(tokens, 0);
  const auto rows = run_prompt(grid, alone, 1);
  for (const std::size_t chunk : {std::size_t{7}, std::size_t{64}, tokens.size()}) {
    growing_text text(tokens, 0);
    const auto found = run_prompt(grid, text, chunk);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto row = std::min((i + 1) * chunk, tokens.size()) - 1;
      BOOST_TEST(same_bits(found[i], rows[row]), "chunks of " << chunk << ", row " << row);
    }
  }
}

BOOST_DATA_TEST_CASE(G04_a_request_among_seven_others_gets_the_same_bits, fixture_names(), name) {
  const auto expected = read_fixture(name);
  stage_grid grid(expected.model);
  const auto alone = run_greedy(grid, expected.prompt, 64, new_tokens);
  // Eight texts of different lengths; ours is the fourth. Some are in their prompt while others
  // decode.
  std::vector<growing_text> texts;
  constexpr std::size_t ours = 3;
  for (std::size_t i = 0; i < 8; ++i) {
    auto prompt = expected.prompt;
    if (i != ours) {
      prompt.resize(5 + 3 * i);
      for (auto& token : prompt)
        token = static_cast<token_id>((token * (i + 3) + i) % grid.vocabulary());
    }
    texts.emplace_back(prompt, static_cast<std::uint32_t>(8 * i));
  }
  logits_rows found;
  while (found.size() < new_tokens) {
    compute::batch rows;
    std::vector<token_id> tokens;
    std::vector<bool> complete;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto chunk = std::min<std::size_t>(4 + i, texts[i].waiting());
      texts[i].add_rows(chunk, rows, tokens);
      complete.push_back(texts[i].waiting() == 0);
    }
    const auto logits = grid.step(rows, tokens);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (complete[i])
        texts[i].append(argmax(logits[i]));
    if (complete[ours])
      found.push_back(logits[ours]);
  }
  BOOST_TEST(same_bits(found, alone.logits));
}

BOOST_AUTO_TEST_CASE(G07_threads_of_a_device_do_not_change_a_bit) {
  const tiny_model model({.layers = 3, .hidden = 96, .heads = 6, .kv_heads = 2, .ffn = 200});
  const std::vector<token_id> prompt{7, 200, 3, 99, 12, 41, 8};
  stage_grid one(model.open());
  stage_grid two(model.open(), {.threads = 2});
  BOOST_TEST(same_bits(run_greedy(one, prompt, 64, new_tokens).logits,
                       run_greedy(two, prompt, 64, new_tokens).logits));
}
