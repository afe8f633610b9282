// Rows of docs/field-reports.md about processes that die at bad moments, and about machines that
// are busy with something else.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/crew.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

cluster_shape stages(std::size_t pipeline, const std::string& more = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = pipeline;
  shape.more = more;
  return shape;
}

std::vector<told_answer> calm(const std::vector<std::string>& lines) {
  return cluster{stages(1)}.generate(lines);
}

/// Processes that do nothing but take time from everybody else.
class burners {
public:
  explicit burners(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      if (const pid_t pid = ::fork(); pid == 0) {
        ::setpriority(PRIO_PROCESS, 0, -5); // where the system lets us
        for (std::atomic<unsigned long> turns{0};;)
          turns.fetch_add(1, std::memory_order_relaxed);
      } else {
        pids_.push_back(pid);
      }
  }

  ~burners() {
    for (const auto pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  burners(const burners&) = delete;
  burners& operator=(const burners&) = delete;

private:
  std::vector<pid_t> pids_;
};

} // namespace

BOOST_AUTO_TEST_CASE(E44_kills_in_one_answer_and_during_the_recovery_change_no_token) {
  const auto lines = some_requests(3, 1800);
  const auto expected = calm(lines);
  const cluster three{stages(3)};
  crew nodes{three, 3};
  background_requests requests{three, lines};
  BOOST_REQUIRE(status_becomes(three, "\"running\":3", 10s));
  for (const auto pause : {0ms, 200ms, 500ms, 900ms}) {
    const auto before = nodes.epoch();
    nodes.kill(1);
    nodes.start(1);
    std::this_thread::sleep_for(pause); // into gathering, loading, linking or the replay
    nodes.kill(2);
    nodes.start(2);
    BOOST_REQUIRE(nodes.serves_with(3, 30s, before));
  }
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(E07_a_head_that_is_restarted_again_and_again_finds_its_nodes) {
  const temporary_folder place;
  const cluster two{stages(2, "[recovery]\njournal = \"" + (place / "journal").string() + "\"\n")};
  const auto request = token_prompt({1, 2, 3}, 8);
  const auto expected = calm({request});
  crew nodes{two, 2};
  for (int time = 0; time < 5; ++time) { // while it serves
    nodes.kill(0);
    nodes.start(0);
    BOOST_REQUIRE(status_becomes(two, serving, 20s));
  }
  for (const auto pause : {20ms, 60ms, 120ms, 250ms, 500ms}) { // while it starts
    nodes.kill(0);
    nodes.start(0);
    std::this_thread::sleep_for(pause);
  }
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  BOOST_TEST(two.generate({request})[0].digests == expected[0].digests,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(E47_a_busy_machine_is_not_taken_for_a_dead_one) {
  const auto lines = some_requests(2, 300);
  const auto expected = calm(lines);
  const cluster three{stages(3)};
  crew nodes{three, 3};
  {
    const burners all{2 * std::thread::hardware_concurrency()};
    background_requests requests{three, lines};
    std::this_thread::sleep_for(20s);
    requests.compare(expected);
  }
  const auto told = three.run({"status", "FILE", "--json"}, 10);
  BOOST_TEST(told.mentions(serving), told.all());
  for (std::size_t i = 0; i < 3; ++i) // and in the same processes
    BOOST_TEST(process_of(three, "n" + std::to_string(i)) == nodes.node(i).pid());
}

BOOST_AUTO_TEST_CASE(E47_one_layer_may_take_longer_than_the_bound) {
  compute::random_model wide; // some seconds for 1900 rows, on one thread
  wide.layers = 1;
  wide.hidden = 2048;
  wide.heads = 16;
  wide.kv_heads = 4;
  wide.ffn = 8192;
  wide.stored = dtype::bf16;
  const served_model model{wide};
  auto shape = stages(1,
                      "[deadlines]\nprogress_ms = 500\n"
                      "[schedule]\nprefill_chunk = 2048\nstep_tokens = 2048\n");
  shape.model = model.folder();
  const auto told =
    cluster{shape}.try_generate({token_prompt(random_tokens(1900, 2048, 1), 2)}, {"--log"});
  BOOST_TEST(told.code == 0, told.all());
  BOOST_TEST(!told.mentions("no progress"), told.all());
  BOOST_TEST(!told.mentions(" is over: no"), told.all());
}

BOOST_AUTO_TEST_CASE(E51_a_node_that_was_away_is_back_when_it_says_so_itself) {
  // A bound of half a second stands for one of minutes: away for 1, 6 and 12 times as long.
  const cluster three{stages(3, "[deadlines]\nprogress_ms = 500\n")};
  const auto request = token_prompt({1, 2, 3}, 8);
  const auto expected = calm({request});
  crew nodes{three, 3};
  for (const auto away : {500ms, 3000ms, 6000ms}) {
    const auto before = nodes.epoch();
    nodes.node(1).signal(SIGSTOP);
    BOOST_REQUIRE(status_becomes(three, "\"state\":\"lost\"", 10s));
    const auto until = std::chrono::steady_clock::now() + away;
    while (std::chrono::steady_clock::now() < until) { // the others speak, and do not revive it
      const auto told = three.run({"status", "FILE", "--json"}, 5);
      BOOST_TEST(!told.mentions(serving), told.all());
      BOOST_TEST(told.mentions("\"state\":\"lost\""), told.all());
      std::this_thread::sleep_for(200ms);
    }
    auto sleeper = std::move(nodes.node(1));
    sleeper.signal(SIGCONT); // as what it was, it is not taken back
    const auto ended = sleeper.wait(10s);
    BOOST_TEST((ended && ended->exited && ended->code != 0));
    BOOST_TEST(!status_becomes(three, serving, 300ms));
    nodes.start(1);
    BOOST_REQUIRE(nodes.serves_with(3, 20s, before));
    BOOST_TEST(three.generate({request})[0].digests == expected[0].digests,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(E11_a_second_head_for_the_same_nodes_is_refused_and_told_by_whom) {
  const cluster two{stages(2)};
  crew nodes{two, 2};
  const auto up = two.run({"up", "FILE"}, 20);
  BOOST_TEST(up.code != 0);
  BOOST_TEST(up.mentions("runs already on this host"), up.all());
  BOOST_TEST(up.mentions("process " + std::to_string(nodes.node(0).pid())), up.all());
  const auto head = two.run({"node", "FILE", "--name", "n0"}, 20);
  BOOST_TEST(head.code != 0);
  BOOST_TEST(head.mentions(std::to_string(nodes.node(0).pid())), head.all());
  BOOST_TEST(two.generate({token_prompt({1, 2, 3}, 4)}).size() == 1u);
}

BOOST_AUTO_TEST_CASE(E03_requests_are_refused_with_the_reason_while_a_node_is_away) {
  const cluster two{stages(2)};
  crew nodes{two, 2};
  const auto begun = std::chrono::steady_clock::now();
  nodes.kill(1);
  BOOST_REQUIRE(status_becomes(two, "\"state\":\"lost\"", 5s));
  BOOST_TEST((std::chrono::steady_clock::now() - begun < 2s)); // half a second, and the questions
  const auto refused = two.try_generate({token_prompt({1, 2, 3}, 4)}, {}, 20);
  BOOST_TEST(refused.code != 0);
  BOOST_TEST(refused.mentions("n1"), refused.all());
}
