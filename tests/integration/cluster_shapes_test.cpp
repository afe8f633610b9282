// One model in every shape, through the program, in real processes over real wires: the same bits
// for every pipeline split, chunk and batch, the same ids within a tolerance for tensor splits.

#include "tests/support/cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr std::size_t answer_tokens = 24;

/// Six layers, 13 query heads on one of which all share the same keys: nothing divides evenly.
const served_model& uneven_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 6;
    wanted.hidden = 78;
    wanted.heads = 13;
    wanted.kv_heads = 1;
    wanted.head_dim = 20;
    wanted.ffn = 101;
    return wanted;
  }()};
  return model;
}

std::vector<std::string> prompts() {
  std::vector<std::string> lines;
  for (unsigned i = 0; i < 3; ++i)
    lines.push_back(token_prompt(random_tokens(5 + 40 * i, 2048, i), answer_tokens));
  return lines;
}

cluster_shape shape_of(std::size_t pipeline, std::size_t tensor) {
  cluster_shape shape;
  shape.model = uneven_model().folder();
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  return shape;
}

/// One rank, one request at a time: what everything else is compared with.
const std::vector<told_answer>& reference() {
  static const auto answers = [] {
    const cluster one{shape_of(1, 1)};
    std::vector<told_answer> found;
    for (const auto& line : prompts())
      found.push_back(one.generate({line}).front());
    return found;
  }();
  return answers;
}

void check_same_bits(const std::vector<told_answer>& found) {
  BOOST_REQUIRE(found.size() == reference().size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].tokens == reference()[i].tokens, boost::test_tools::per_element());
    BOOST_TEST(found[i].digests.size() == answer_tokens);
    BOOST_TEST(found[i].digests == reference()[i].digests, boost::test_tools::per_element());
  }
}

void check_close(const std::vector<told_answer>& found) {
  BOOST_REQUIRE(found.size() == reference().size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].tokens == reference()[i].tokens, boost::test_tools::per_element());
    for (std::size_t t = 0; t < found[i].logprobs.size(); ++t) {
      const auto expected = reference()[i].logprobs.at(t);
      BOOST_TEST(std::abs(found[i].logprobs[t] - expected)
                 <= 1e-5 * std::max(1.0, std::abs(expected)));
    }
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(G06_pipeline_stages_give_the_same_bits) {
  for (const std::size_t stages : {2u, 3u, 5u})
    check_same_bits(cluster{shape_of(stages, 1)}.generate(prompts()));
}

BOOST_AUTO_TEST_CASE(G06_every_transport_gives_the_same_bits) {
  auto tcp = shape_of(3, 1);
  tcp.node_more = "transports = \"tcp,self\"";
  check_same_bits(cluster{tcp}.generate(prompts()));
  auto one_process = shape_of(3, 1);
  one_process.ranks_per_node = 3;
  check_same_bits(cluster{one_process}.generate(prompts()));
  auto two_processes = shape_of(3, 1);
  two_processes.ranks_per_node = 2;
  check_same_bits(cluster{two_processes}.generate(prompts()));
}

BOOST_AUTO_TEST_CASE(G04_chunks_and_other_requests_do_not_change_a_bit) {
  for (const auto* schedule : {"prefill_chunk = 1", "prefill_chunk = 7", "prefill_chunk = 256"}) {
    auto shape = shape_of(2, 1);
    shape.more = std::string{"[schedule]\n"} + schedule + "\n";
    auto lines = prompts();
    for (unsigned other = 0; other < 5; ++other) // the three are now among seven others
      lines.push_back(token_prompt(random_tokens(3 + 11 * other, 2048, 100 + other), 9 + other));
    auto found = cluster{shape}.generate(lines);
    found.resize(reference().size());
    check_same_bits(found);
  }
}

BOOST_AUTO_TEST_CASE(G07_twenty_fresh_runs_agree) {
  const cluster two{shape_of(2, 1)};
  for (int run = 0; run < 18; ++run)
    check_same_bits(two.generate(prompts()));
  auto threads = shape_of(1, 1);
  const cluster one{threads};
  check_same_bits(one.generate(prompts(), {"--set", "node.n0.threads=2"}));
  check_same_bits(one.generate(prompts(), {"--set", "node.n0.threads=1"}));
}

BOOST_AUTO_TEST_CASE(F08_tensor_parallel_sizes_agree) {
  for (const std::size_t tensor : {2u, 3u, 4u, 5u, 6u})
    check_close(cluster{shape_of(1, tensor)}.generate(prompts()));
}

BOOST_AUTO_TEST_CASE(F08_pipeline_times_tensor_agrees) {
  check_close(cluster{shape_of(2, 2)}.generate(prompts()));
  check_close(cluster{shape_of(2, 3)}.generate(prompts()));
  check_close(cluster{shape_of(3, 2)}.generate(prompts()));
}
