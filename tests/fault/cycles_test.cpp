// A node is killed and started again fifty times while requests run: those that live on hold no
// more than before, nothing is left behind, and a request outlives more faults than it has limits.
//
//   fault_cycles -- page=docs/faults.md    also writes the figures

#include "tests/support/cluster_commands.hpp"
#include "tests/support/leftovers.hpp"
#include "tests/support/observer.hpp"
#include "tests/support/page_part.hpp"
#include "tests/support/tended_nodes.hpp"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include <csignal>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t cycles = 50; ///< Or `-- cycles=N`.
constexpr std::size_t warm = 10;   ///< Cycles until caches and pools have their size.
constexpr std::size_t victim = 1;
const std::vector<std::size_t> survivors{0, 2};

cluster_shape three_stages() {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 3;
  return shape;
}

std::string line_of(std::size_t cycle, const std::vector<holdings>& held) {
  std::string line = fmt::format("| {} |", cycle);
  for (const auto& one : held)
    line +=
      fmt::format(" {:.1f} MB | {} | {} |", one.memory_kb / 1024.0, one.descriptors, one.threads);
  return line + "\n";
}

std::vector<holdings> held_now(const tended_nodes& nodes) {
  std::vector<holdings> held;
  for (const auto node : survivors)
    held.push_back(held_by(nodes.pid(node)));
  return held;
}

} // namespace

BOOST_AUTO_TEST_CASE(fifty_kills_leave_the_survivors_as_they_were) {
  const auto lines = some_requests(2, 1700);
  const auto expected = cluster{three_stages()}.generate(lines);
  const cluster where{three_stages()};
  tended_nodes nodes{where, 3};
  observer watch{where};
  BOOST_REQUIRE(watch.look_until([](const sight& now) { return now.serves(); }, 30s));
  std::optional<live_requests> requests;
  std::size_t answered = 0;
  const auto ask = [&] {
    if (requests && !requests->done())
      return;
    if (requests)
      for (std::size_t i = 0; i < lines.size(); ++i) {
        BOOST_REQUIRE(requests->answers().size() == lines.size());
        BOOST_TEST((requests->answers()[i].digests == expected[i].digests),
                   requests->answers()[i].what);
        ++answered;
      }
    requests.emplace(where, lines);
  };
  const auto gets_on = [&] { // some tokens, of whichever request
    const auto until = test_clock::now() + 10s;
    for (const auto before = requests->pieces();
         test_clock::now() < until && !requests->done() && requests->pieces() < before + 5;)
      std::this_thread::sleep_for(1ms);
  };
  std::vector<holdings> before, after; // both with requests under way
  std::string table = "| Cycle | n0 memory | descriptors | threads | n2 memory | descriptors | "
                      "threads |\n|---|---|---|---|---|---|---|\n";
  const auto wanted = std::stoul(test_option("cycles").value_or(std::to_string(cycles)));
  for (std::size_t cycle = 1; cycle <= wanted; ++cycle) {
    ask();
    gets_on();
    const auto now = watch.look();
    BOOST_REQUIRE(now);
    nodes.signal(victim, SIGKILL);
    BOOST_REQUIRE(nodes.ended(victim, 5s));
    nodes.start(victim);
    const auto serves = [&](const sight& later) {
      return later.serves() && later.epoch > now->epoch;
    };
    BOOST_REQUIRE_MESSAGE(watch.look_until(serves, 20s), nodes.words(0));
    if (cycle == warm)
      before = held_now(nodes);
    if (cycle == wanted)
      after = held_now(nodes);
    if (cycle % (wanted / 5) == 0)
      table += line_of(cycle, held_now(nodes));
  }
  BOOST_REQUIRE(requests->answers().size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i)
    BOOST_TEST((requests->answers()[i].digests == expected[i].digests),
               requests->answers()[i].what);
  BOOST_TEST_MESSAGE(table);
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    // An allocator keeps some pages more or less; what leaks in each of 40 cycles would be seen.
    BOOST_TEST(after[i].memory_kb < before[i].memory_kb + 2 * 1024);
    BOOST_TEST(after[i].descriptors <= before[i].descriptors + 1); // a client comes and goes
    BOOST_TEST(after[i].threads == before[i].threads);
  }
  const auto left = shared_memory_left_by(nodes.all_pids());
  BOOST_TEST(left.empty(), left);
  BOOST_TEST(processes_with(where.file().string()).size() == nodes.size());
  BOOST_TEST(entries_below(where.folder().path()) < 20u);
  if (const auto page = test_option("page"))
    write_page_part(*page, "cycles", table);
}
