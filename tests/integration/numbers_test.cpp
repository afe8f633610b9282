// Numbers through the whole program: values beyond 16 bits, equal logits, rounding on the wire,
// hosts that compute with other instructions, tensor splits of every variant.

#include "compute/cpu/instruction_sets.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/scripted_model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace troupe;
using namespace troupe::tests;

namespace {

std::vector<std::string> prompts() {
  std::vector<std::string> lines;
  for (unsigned i = 0; i < 3; ++i)
    lines.push_back(token_prompt(random_tokens(5 + 20 * i, 2048, i), 20));
  return lines;
}

/// Largest difference of log-probabilities, relative to their size; ids must be equal.
double largest_difference(const std::vector<told_answer>& found,
                          const std::vector<told_answer>& expected) {
  double largest = 0;
  BOOST_REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].tokens == expected[i].tokens, boost::test_tools::per_element());
    for (std::size_t t = 0; t < found[i].logprobs.size(); ++t)
      largest = std::max(largest,
                         std::abs(found[i].logprobs[t] - expected[i].logprobs.at(t))
                           / std::max(1.0, std::abs(expected[i].logprobs.at(t))));
  }
  return largest;
}

void check_same_bits(const std::vector<told_answer>& found,
                     const std::vector<told_answer>& expected) {
  BOOST_REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    BOOST_TEST(found[i].digests == expected[i].digests, boost::test_tools::per_element());
}

} // namespace

// One token's activations are a million: more than the f16 wire can carry. Another's are not.
BOOST_AUTO_TEST_CASE(G01_what_the_f16_wire_cannot_carry_fails_that_request_alone) {
  script wanted;
  wanted.follows = chain({50, 51, 52, 53, 1}, chain({60, 61, 62, 63, 1}));
  wanted.loud = {50};
  const scripted_model model{wanted};
  const cluster two{in_one_process(model.folder(), 2)};
  const std::vector<std::string> both{R"({"tokens": [50]})",
                                      R"({"tokens": [60]})",
                                      R"({"tokens": [60, 50]})",
                                      R"({"tokens": [50, 60]})"};
  for (const auto* wire : {"f32", "bf16"}) { // finite: the loud token is continued as it should be
    const auto answers = two.generate(both, set({std::string{"parallel.wire_dtype="} + wire}));
    BOOST_TEST(answers[0].tokens == (std::vector<token_id>{51, 52, 53, 1}),
               boost::test_tools::per_element());
    BOOST_TEST(answers[1].tokens == (std::vector<token_id>{61, 62, 63, 1}),
               boost::test_tools::per_element());
  }
  const auto ran = two.try_generate(both, set({"parallel.wire_dtype=f16"}));
  BOOST_TEST(ran.code == 1, ran.all());
  const auto answers = read_answers(ran.lines);
  BOOST_REQUIRE(answers.size() == 4u);
  for (const std::size_t loud : {0u, 2u, 3u}) {
    BOOST_TEST(answers[loud].finish == "error", loud);
    BOOST_TEST(answers[loud].what.find("not a finite number") != std::string::npos);
    BOOST_TEST(answers[loud].what.find("parallel.wire_dtype = \"f16\"") != std::string::npos);
    BOOST_TEST(answers[loud].tokens.empty()); // never a token 0 that nobody chose
  }
  BOOST_TEST(answers[1].tokens == (std::vector<token_id>{61, 62, 63, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(G05_of_equal_logits_the_lowest_id_wins) {
  script wanted;
  wanted.follows = {{50, 900}, {50, 51}, {50, 2047}, {60, 2046}, {60, 2045}};
  const scripted_model model{wanted};
  const auto check = [&](std::size_t pipeline, std::size_t tensor) {
    const cluster shaped{in_one_process(model.folder(), pipeline, tensor)};
    const auto answers = shaped.generate({token_prompt({50}, 1), token_prompt({60}, 1)});
    BOOST_TEST(answers[0].tokens.front() == 51u);
    BOOST_TEST(answers[1].tokens.front() == 2045u);
    BOOST_TEST(std::abs(answers[0].logprobs.front() - std::log(1.0 / 3))
               < 1e-3); // three equal ones
  };
  check(1, 1);
  check(2, 1);
  check(1, 3); // the equal ones lie on different ranks
}

BOOST_AUTO_TEST_CASE(G09_rounding_on_the_wire_is_off_by_default_and_bounded) {
  const auto expected = cluster{in_one_process(small_model().folder(), 1)}.generate(prompts());
  const cluster four{in_one_process(small_model().folder(), 4)};
  check_same_bits(four.generate(prompts()), expected);
  check_same_bits(four.generate(prompts(), set({"parallel.wire_dtype=f32"})), expected);
  // Three roundings to 11 and to 8 bits on the way.
  const auto compare = [&](const std::string& wire) {
    const auto found = four.generate(prompts(), set({"parallel.wire_dtype=" + wire}));
    BOOST_TEST(found[0].digests.front() != expected[0].digests.front());
    double largest = 0; // of the first tokens: later ones may follow another id
    for (std::size_t i = 0; i < found.size(); ++i)
      largest =
        std::max(largest, std::abs(found[i].logprobs.front() - expected[i].logprobs.front()));
    return largest;
  };
  BOOST_TEST(compare("f16") < 0.01);
  BOOST_TEST(compare("bf16") < 0.1);
}

BOOST_AUTO_TEST_CASE(G11_unlike_hosts_give_the_same_ids) {
  auto shape = in_one_process(small_model().folder(), 2);
  const auto expected = cluster{shape}.generate(prompts());
  shape.ranks_per_node = 1;
  const cluster two{shape};
  for (const auto& name : compute::cpu::usable_instruction_sets()) {
    const auto found =
      two.generate(prompts(), set({"node.n0.instruction_set=" + name, "node.n0.threads=2"}));
    BOOST_TEST(largest_difference(found, expected) < 1e-4, name);
    if (name.starts_with("avx"))
      check_same_bits(found, expected);
  }
  auto pair = in_one_process(small_model().folder(), 1, 2);
  pair.ranks_per_node = 1;
  const cluster group{pair};
  const auto alike = group.generate(prompts());
  BOOST_TEST(largest_difference(alike, expected) < 1e-4);
  const auto unlike =
    group.generate(prompts(), set({"node.n0.instruction_set=scalar", "node.n1.threads=2"}));
  BOOST_TEST(largest_difference(unlike, expected) < 1e-4);
}

BOOST_AUTO_TEST_CASE(A01_A03_heads_that_do_not_divide_run_uneven_or_replicated) {
  const auto agree = [](std::size_t heads, std::size_t kv_heads, std::size_t tensor) {
    compute::random_model wanted;
    wanted.hidden = 128;
    wanted.heads = heads;
    wanted.kv_heads = kv_heads;
    const served_model model{wanted};
    const auto expected = cluster{in_one_process(model.folder(), 1)}.generate(prompts());
    const auto found = cluster{in_one_process(model.folder(), 1, tensor)}.generate(prompts());
    BOOST_TEST(largest_difference(found, expected) < 1e-4, kv_heads << " on " << tensor);
  };
  agree(8, 8, 5);
  agree(8, 1, 4);
  agree(8, 2, 4);
}

BOOST_AUTO_TEST_CASE(F08_norms_biases_ties_and_shared_heads_agree_on_any_tensor_size) {
  std::vector<compute::random_model> variants(4);
  variants[0].family = "qwen2"; // biases on q, k, v
  variants[1].family = "qwen3"; // norms of queries and keys
  variants[2].tied_head = true;
  variants[2].kv_heads = 1;
  variants[3].family = "mistral";
  variants[3].window = 8;
  for (auto& variant : variants) {
    variant.layers = 3;
    variant.heads = 6;
    variant.hidden = 96;
    variant.kv_heads = std::min<std::size_t>(variant.kv_heads, 2);
    const served_model model{variant};
    const auto expected = cluster{in_one_process(model.folder(), 1)}.generate(prompts());
    for (const std::size_t tensor : {2u, 5u, 6u})
      BOOST_TEST(largest_difference(
                   cluster{in_one_process(model.folder(), 1, tensor)}.generate(prompts()), expected)
                   < 1e-4,
                 variant.family << ", tensor " << tensor);
    BOOST_TEST(largest_difference(cluster{in_one_process(model.folder(), 2, 3)}.generate(prompts()),
                                  expected)
               < 1e-4);
  }
}
