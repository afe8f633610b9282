#include "compute/cpu/dealer.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

using namespace troupe;
using compute::cpu::dealer;

BOOST_AUTO_TEST_CASE(a_thread_takes_its_own_part_in_order_and_then_what_others_have_left) {
  dealer work(2);
  work.deal(9, 2); // 0 ... 4 and 5 ... 8
  BOOST_TEST((work.take(0, 2) == range{0, 2}));
  BOOST_TEST((work.take(0, 2) == range{2, 4}));
  BOOST_TEST((work.take(0, 2) == range{4, 5}));
  BOOST_TEST((work.take(0, 9) == range{7, 9})); // half of four
  BOOST_TEST((work.take(0, 1) == range{6, 7}));
  BOOST_TEST((work.take(1, 9) == range{5, 6}));
  BOOST_TEST(work.take(1, 9).empty());
  BOOST_TEST(work.take(0, 9).empty());
}

BOOST_AUTO_TEST_CASE(what_one_thread_deals_with_alone_is_all) {
  dealer work(4);
  work.deal(3, 1);
  BOOST_TEST((work.take(0, 8) == range{0, 3}));
  BOOST_TEST(work.take(0, 8).empty());
}

BOOST_AUTO_TEST_CASE(every_item_is_taken_once_whoever_is_slow) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t items = 5'003;
  dealer work(threads);
  for (std::size_t slow = 0; slow < threads; ++slow) {
    std::vector<std::atomic<int>> taken(items);
    work.deal(items, threads);
    std::vector<std::thread> team;
    for (std::size_t thread = 0; thread < threads; ++thread)
      team.emplace_back([&, thread] {
        for (auto next = work.take(thread, 1 + thread); !next.empty();
             next = work.take(thread, 1 + thread)) {
          for (auto item = next.begin; item < next.end; ++item)
            ++taken[item];
          if (thread == slow)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    for (auto& one : team)
      one.join();
    BOOST_TEST(std::all_of(taken.begin(), taken.end(), [](const auto& one) { return one == 1; }));
  }
}
