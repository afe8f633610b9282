#include "compute/cpu/thread_team.hpp"

#include <boost/test/unit_test.hpp>

#include <sched.h>

#include <numeric>

using namespace troupe;
using namespace troupe::compute;
using compute::cpu::thread_team;

namespace {

std::unique_ptr<thread_team> team_of(std::size_t threads) {
  auto made = thread_team::start({.threads = threads, .cores = {}});
  BOOST_REQUIRE(made);
  return std::move(*made);
}

} // namespace

BOOST_AUTO_TEST_CASE(every_thread_takes_part_in_every_region_once) {
  for (std::size_t threads : {1, 2, 3, 7}) {
    auto team = team_of(threads);
    BOOST_TEST(team->size() == threads);
    std::vector<std::size_t> count(threads * 16, 0);
    for (int region = 0; region < 500; ++region)
      team->run([&](std::size_t thread) { ++count[thread * 16]; });
    for (std::size_t thread = 0; thread < threads; ++thread)
      BOOST_TEST(count[thread * 16] == 500u);
    BOOST_TEST(team->regions() == 500u);
  }
}

BOOST_AUTO_TEST_CASE(what_was_written_before_a_barrier_is_seen_after_it) {
  for (std::size_t threads : {1, 2, 4}) {
    auto team = team_of(threads);
    std::vector<std::size_t> written(threads, 0);
    std::atomic<std::size_t> wrong = 0;
    for (int region = 0; region < 20; ++region)
      team->run([&](std::size_t thread) {
        for (std::size_t round = 1; round <= 20; ++round) {
          written[thread] = round * (thread + 1);
          team->barrier();
          for (std::size_t other = 0; other < threads; ++other)
            wrong += written[other] != round * (other + 1);
          team->barrier();
        }
      });
    BOOST_TEST(wrong.load() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_idle_team_sleeps) {
  auto team = team_of(2);
  team->run([](std::size_t) {});
  timespec before{}, after{};
  std::this_thread::sleep_for(std::chrono::milliseconds(20)); // Let the follower stop spinning.
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used =
    double(after.tv_sec - before.tv_sec) + 1e-9 * double(after.tv_nsec - before.tv_nsec);
  BOOST_TEST(used < 0.002);
  BOOST_TEST(team->sleeps() > 0u);
  std::atomic<int> ran = 0;
  team->run([&](std::size_t) { ++ran; });
  BOOST_TEST(ran.load() == 2);
}

BOOST_AUTO_TEST_CASE(threads_run_on_the_cores_that_were_given) {
  cpu_set_t before;
  BOOST_REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  std::vector<unsigned> usable;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before))
      usable.push_back(core);
  const auto threads = std::min<std::size_t>(2, usable.size());
  const std::vector<unsigned> cores(usable.end() - threads, usable.end());
  {
    auto team = thread_team::start({.threads = threads, .cores = cores});
    BOOST_REQUIRE(team);
    std::vector<int> found(threads, -1);
    (*team)->run([&](std::size_t thread) { found[thread] = sched_getcpu(); });
    for (std::size_t thread = 0; thread < threads; ++thread)
      BOOST_TEST(found[thread] == static_cast<int>(cores[thread]));
  }
  BOOST_REQUIRE(sched_setaffinity(0, sizeof(before), &before) == 0);
}
