// Faults as config: a cluster of real processes in which something goes wrong on purpose.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

cluster_shape two_nodes(const std::string& faults = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 2;
  shape.more = faults;
  return shape;
}

std::string fault_text(const std::string& what, const std::string& where, const std::string& when) {
  return "[[fault]]\nwhat = \"" + what + "\"\nwhere = \"" + where + "\"\nwhen = \"" + when + "\"\n";
}

const std::string one_request = token_prompt({1, 2, 3, 4, 5}, 12);

/// What went wrong on purpose, as the logs of all nodes tell it; sorted, for they are not in step.
std::vector<std::string> trace_in(const outcome& told) {
  std::vector<std::string> lines;
  for (const auto& line : told.lines)
    if (const auto at = line.find("on purpose: "); at != std::string::npos)
      lines.push_back(line.substr(at));
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool status_becomes(const cluster& where, const std::string& words, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    if (where.run({"status", "FILE", "--json"}, 5).mentions(words))
      return true;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_value_that_is_no_number_fails_its_request_alone) {
  const cluster sound{two_nodes()};
  const auto expected = sound.generate({one_request});
  const cluster faulty{two_nodes(fault_text("nan", "rank 0", "step 4 layer 1"))};
  const serving_cluster serving{faulty};
  BOOST_TEST(serving.words().find("faults are on: 1 fault of ") != std::string::npos);
  const auto answers = faulty.try_generate({one_request});
  BOOST_TEST(answers.mentions("not a finite number"), answers.all());
  BOOST_TEST(serving.becomes("faults", 1));
  const auto next = faulty.generate({one_request});
  BOOST_TEST(next[0].digests == expected[0].digests, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_file_and_seed_go_wrong_in_the_same_way_twice) {
  const auto faults = fault_text("slow", "any", "step 2") + "factor = 2\nsteps = 1\nseed = 3\n"
                      + fault_text("duplicate", "any link", "message 5") + "times = 2\nseed = 3\n"
                      + fault_text("delay", "rank 1 -> conductor", "step 6") + "ms = 20\n";
  std::vector<std::vector<std::string>> traces;
  for (int round = 0; round < 2; ++round) {
    const cluster faulty{two_nodes(faults)};
    const auto told = faulty.try_generate({one_request}, {"--log"});
    BOOST_TEST(told.code == 0, told.all());
    traces.push_back(trace_in(told));
    BOOST_TEST(traces.back().size() == 4u, told.all());
  }
  BOOST_TEST(traces[0] == traces[1], boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(E01_a_rank_that_is_killed_at_a_step_dies_once_and_its_request_goes_on) {
  const cluster sound{two_nodes()};
  const auto expected = sound.generate({one_request});
  const cluster faulty{two_nodes(fault_text("kill", "rank 1", "step 5"))};
  auto head = faulty.start({"node", "FILE", "--name", "n0"});
  auto tail = faulty.start({"node", "FILE", "--name", "n1"});
  BOOST_REQUIRE(status_becomes(faulty, "\"phase\":\"serving\"", 20s));
  std::vector<told_answer> answers;
  std::thread client{[&] { answers = read_answers(faulty.try_generate({one_request}).lines); }};
  const auto died = tail.wait(20s);
  BOOST_TEST((died && died->signal == SIGKILL));
  auto again = faulty.start({"node", "FILE", "--name", "n1"});
  client.join();
  BOOST_REQUIRE(answers.size() == 1u);
  BOOST_TEST(answers[0].digests == expected[0].digests, boost::test_tools::per_element());
  head.signal(SIGTERM);
  const auto ended = again.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
  head.wait(10s);
}

BOOST_AUTO_TEST_CASE(E44_kills_at_any_moment_of_an_answer_change_no_token) {
  const cluster sound{two_nodes()};
  const auto expected = sound.generate({one_request});
  for (const std::string when :
       {"step 1", "step 5", "step 5 layer 3", "phase leaving 4", "message 6"})
    BOOST_TEST_CONTEXT(when) {
      const cluster faulty{two_nodes(fault_text("kill", "rank 1", when) + "times = 2\n")};
      const serving_cluster serving{faulty}; // It starts the node again, and again.
      const auto answers = faulty.generate({one_request});
      BOOST_TEST(answers[0].digests == expected[0].digests, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_fault_is_injected_into_a_running_cluster) {
  const cluster sound{two_nodes()};
  const serving_cluster serving{sound};
  const auto expected = sound.generate({one_request});
  BOOST_TEST(serving.becomes("faults", 0));
  const auto receipt = sound.run({"inject",
                                  "FILE",
                                  "--what",
                                  "slow",
                                  "--where",
                                  "rank 1",
                                  "--when",
                                  "step 3",
                                  "--steps",
                                  "2",
                                  "--factor",
                                  "3"});
  BOOST_TEST(receipt.code == 0, receipt.all());
  BOOST_TEST(receipt.mentions("slow at rank 1 of node n1, at once"), receipt.all());
  const auto slowed = sound.generate({one_request});
  BOOST_TEST(slowed[0].digests == expected[0].digests, boost::test_tools::per_element());
  BOOST_TEST(serving.becomes("faults", 1));
}

BOOST_AUTO_TEST_CASE(an_order_that_cannot_be_is_refused_with_what_could) {
  const cluster sound{two_nodes()};
  const auto idle = sound.run({"inject", "FILE", "--what", "kill"});
  BOOST_TEST(idle.code == 5);
  BOOST_TEST(idle.mentions("does not run"));
  const serving_cluster serving{sound};
  const auto refused = [&](std::vector<std::string> more, const std::string& words) {
    std::vector<std::string> command{"inject", "FILE"};
    command.insert(command.end(), more.begin(), more.end());
    const auto told = sound.run(command);
    BOOST_TEST(told.code == 2, told.all());
    BOOST_TEST(told.mentions(words), told.all());
  };
  refused({"--what", "kill", "--where", "rank 7"}, "ranks 0 to 1 exist");
  refused({"--what", "kill", "--when", "tomorrow"}, "is no moment");
  refused({"--what", "kill", "--when", "phase reddy"}, "did you mean \"ready\"?");
  refused({"--what", "melt"}, "one of kill, stop");
}

BOOST_AUTO_TEST_CASE(a_phase_that_is_none_is_refused_with_a_caret) {
  const cluster wrong{two_nodes(fault_text("kill", "rank 1", "phase leavin"))};
  for (const std::string command : {"up", "plan", "config"}) {
    const auto told = wrong.run({command, "FILE"});
    BOOST_TEST(told.code == 2);
    BOOST_TEST(told.mentions("did you mean \"leaving\"?"), told.all());
    BOOST_TEST(told.mentions("^^^"));
  }
}

BOOST_AUTO_TEST_CASE(a_moment_that_never_came_is_named_at_the_end) {
  const cluster faulty{two_nodes(fault_text("kill", "rank 1", "step 2 layer 40"))};
  const auto told = faulty.try_generate({one_request}, {"--log"});
  BOOST_TEST(told.code == 0);
  BOOST_TEST(told.mentions("fault[0] kill at rank 1 never happened"), told.all());
}

BOOST_AUTO_TEST_CASE(A09_every_key_of_a_fault_is_told_by_config) {
  const cluster faulty{two_nodes(fault_text("slow", "rank 1", "step 3")
                                 + "times = 2\nsteps = 4\nms = 5\nfactor = 1.5\n"
                                   "length = \"n+2\"\nseed = 6\n")};
  const auto told = faulty.run({"config", "FILE"});
  for (const std::string words : {"fault[0].what",
                                  "fault[0].where",
                                  "fault[0].when",
                                  "fault[0].times",
                                  "fault[0].steps",
                                  "fault[0].ms",
                                  "fault[0].factor",
                                  "fault[0].length",
                                  "fault[0].seed"})
    BOOST_TEST(told.mentions(words), words);
}
