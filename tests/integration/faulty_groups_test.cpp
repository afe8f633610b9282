// Tensor groups whose members do not do the same: an error that names both ranks, never a hang or a
// wrong sum, and requests that go on with the tokens that they would have had.

#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>

using namespace troupe;
using namespace troupe::tests;

namespace {

const served_model& small_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 2;
    return wanted;
  }()};
  return model;
}

cluster_shape pair_of_ranks(const std::string& more, const std::string& transports = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.tensor = 2;
  shape.more = more;
  if (!transports.empty())
    shape.node_more = "transports = \"" + transports + "\"";
  return shape;
}

const std::vector<std::string> requests{token_prompt({1, 2, 3, 4, 5}, 8)};

const std::vector<told_answer>& expected() {
  static const auto answers = cluster{pair_of_ranks({})}.generate(requests);
  return answers;
}

std::string fault_text(const std::string& what, const std::string& more) {
  return "[[fault]]\nwhat = \"" + what + "\"\nwhere = \"rank 1\"\n" + more + "\n";
}

/// Over memory that the ranks share, and over frames.
const std::vector<std::string> both_ways{"", "tcp,self"};

/// Runs the requests with a fault; what the nodes said, after the tokens were compared.
outcome run_with(const std::string& fault, const std::string& transports) {
  const cluster faulty{pair_of_ranks(fault, transports)};
  auto told = faulty.try_generate(requests, {"--log"});
  const auto answers = read_answers(told.lines);
  BOOST_REQUIRE_MESSAGE(answers.size() == 1u, told.all());
  BOOST_TEST(answers[0].digests == expected()[0].digests, boost::test_tools::per_element());
  return told;
}

/// What a file of that name says, wherever below a folder it lies.
std::string read_below(const std::filesystem::path& folder, const std::string& name) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder})
    if (entry.path().filename() == name) {
      std::ifstream in{entry.path()};
      return {std::istreambuf_iterator<char>(in), {}};
    }
  return {};
}

} // namespace

BOOST_AUTO_TEST_CASE(F01_another_length_names_both_ranks_and_both_lengths) {
  for (const auto& transports : both_ways)
    for (const std::string length : {"n-2", "n+2", "10n"})
      BOOST_TEST_CONTEXT(length << " over " << (transports.empty() ? "memory" : transports)) {
        const auto told = run_with(
          fault_text("wrong_length", "when = \"call 9\"\nlength = \"" + length + "\""), transports);
        BOOST_TEST(told.mentions("rank 0 calls all_reduce 9 of epoch 1 with "), told.all());
        BOOST_TEST(told.mentions(" elements, rank 1 calls all_reduce 9 of epoch 1 with "));
      }
}

BOOST_AUTO_TEST_CASE(F03_another_operation_names_both_ranks_and_both_operations) {
  for (const auto& transports : both_ways)
    BOOST_TEST_CONTEXT(transports) {
      const auto told =
        run_with(fault_text("wrong_operation", "when = \"step 2 layer 1\""), transports);
      BOOST_TEST(told.mentions("rank 0 calls all_reduce "), told.all());
      BOOST_TEST(told.mentions("rank 1 calls barrier "), told.all());
    }
}

BOOST_AUTO_TEST_CASE(a_collective_that_fails_at_one_member_alone_holds_nobody) {
  for (const auto& transports : both_ways)
    BOOST_TEST_CONTEXT(transports) {
      const auto begin = std::chrono::steady_clock::now();
      const auto told = run_with(fault_text("fail_collective", "when = \"call 12\""), transports);
      BOOST_TEST(told.mentions("failed on purpose"), told.all());
      // The deadline of a step is a minute: the others heard of it.
      BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)));
    }
}

BOOST_AUTO_TEST_CASE(F05_one_decision_for_all_when_a_member_is_slow_and_requests_time_out) {
  const cluster faulty{pair_of_ranks("[deadlines]\nrequest_ms = 1500\n[schedule]\nqueue = 64\n"
                                     + fault_text("slow", "factor = 20\nsteps = 20"))};
  const serving_cluster serving{faulty};
  std::vector<std::string> many;
  for (token_id i = 0; i < 12; ++i)
    many.push_back(token_prompt({i, 2, 3}, 60));
  const auto told = faulty.try_generate(many, {}, 60);
  const auto answers = read_answers(told.lines);
  BOOST_TEST(answers.size() == many.size(), told.all());
  for (const auto& one : answers)
    BOOST_TEST((one.finish == "length" || one.what.find("took longer than") != std::string::npos),
               one.finish << ": " << one.what);
  // Once the slow spell is over, all is as before.
  outcome next;
  for (int round = 0; round < 20 && next.code != 0; ++round)
    next = faulty.try_generate(requests);
  const auto after = read_answers(next.lines);
  BOOST_REQUIRE_MESSAGE(next.code == 0 && after.size() == 1u, next.all());
  BOOST_TEST(after[0].digests == expected()[0].digests, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(F07_what_each_rank_did_last_is_written_when_an_epoch_ends_by_a_fault) {
  const cluster faulty{pair_of_ranks(fault_text("wrong_operation", "when = \"step 3\""))};
  const serving_cluster serving{faulty};
  const auto answers = faulty.generate(requests);
  BOOST_TEST(answers[0].digests == expected()[0].digests, boost::test_tools::per_element());
  for (const std::string rank : {"0", "1"}) {
    const auto text = read_below(faulty.folder().path(), "rank-" + rank + ".record");
    BOOST_TEST_CONTEXT(rank << "\n" << text) {
      BOOST_TEST(text.find("epoch 1 ended: ") == 0u);
      BOOST_TEST(text.find("epoch 1 step 3: step begins with 1 rows") != std::string::npos);
      BOOST_TEST(text.find("all_reduce 1 with ") != std::string::npos);
      if (rank == "1") // Rank 0 lives with the conductor: no frame travels.
        BOOST_TEST(text.find("frame from the conductor: step_tokens") != std::string::npos);
    }
  }
}
