// The schedule under random operations: whatever comes in whatever order, every request ends
// exactly once, no slot and no page is lost, and the ranks are always told the truth
// (schedule_driver).
#include "tests/unit/actors/schedule_driver.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace troupe;
using namespace troupe::actors;
using tests::schedule_driver;

namespace {

class storm {
public:
  explicit storm(std::uint32_t seed) : random_(seed), limits_(draw_limits()), driver_(limits_) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i)
      act();
    settle();
  }

private:
  std::size_t draw(std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>{least, most}(random_);
  }

  schedule_limits draw_limits() {
    schedule_limits drawn;
    drawn.context = draw(8, 300);
    drawn.max_sequences = draw(1, 6);
    drawn.max_queue = draw(1, 8);
    drawn.prefill_chunk = draw(1, 40);
    drawn.max_rows = draw(1, 60);
    drawn.micro_batches = draw(1, 4);
    drawn.pages = draw(1, 30);
    drawn.stages = draw(1, 4);
    drawn.keeps_boundaries = draw(0, 3) > 0;
    return drawn;
  }

  void act() {
    switch (draw(0, 19)) {
    case 0:
    case 1:
    case 2: submit(); break;
    case 3: cancel(); break;
    case 4: driver_.tell_idle_releases(); break;
    case 5:
      if (draw(0, 20) == 0)
        lose_the_epoch();
      else if (draw(0, 2) == 0)
        interrupt();
      else if (draw(0, 2) == 0)
        replan();
      break;
    default:
      if (draw(0, 1) == 0)
        driver_.plan();
      else if (driver_.steps_in_flight() > 0)
        commit();
    }
    BOOST_TEST(driver_.work().pages().used() <= limits_.pages);
    BOOST_TEST(driver_.work().running() <= limits_.max_sequences);
    // What lived under a former plan may wait again, whatever the length of the queue.
    BOOST_TEST(driver_.work().waiting() <= limits_.max_queue + limits_.max_sequences);
  }

  void replan() {
    limits_.stages = draw(1, 4);
    limits_.pages = std::max(driver_.work().pages().used(), draw(1, 30));
    std::set<std::size_t> lost;
    for (std::size_t stage = 0; stage < limits_.stages; ++stage)
      if (draw(0, 5) == 0)
        lost.insert(stage);
    for (const auto id : driver_.replan(limits_.stages, limits_.pages, lost))
      end(number(id));
  }

  void submit() {
    const auto id = ++last_id_;
    auto what = tests::wish(id, draw(0, 80), draw(0, 60));
    if (draw(0, 2) == 0)
      what.end_tokens = {3, 4};
    if (driver_.work().submit(std::move(what)))
      open_.insert(id);
  }

  void end(std::uint64_t id) {
    BOOST_TEST(open_.erase(id) == 1u, "request " << id << " ended twice, or never began");
  }

  void cancel() {
    const auto id = draw(1, last_id_ + 1);
    const bool was_open = open_.contains(id);
    BOOST_TEST(driver_.work().cancel(request_id{id}) == was_open);
    if (was_open)
      end(id);
  }

  void commit() {
    const bool fails = draw(0, 30) == 0;
    const auto token = static_cast<token_id>(draw(0, 40));
    for (const auto& given : driver_.commit(token, fails ? 5 : 0)) {
      BOOST_TEST(open_.contains(number(given.id)), "a token for a request that has ended");
      if (given.ended != sequence_end::none)
        end(number(given.id));
    }
  }

  void interrupt() {
    std::set<std::size_t> lost;
    for (std::size_t stage = 0; stage < limits_.stages; ++stage)
      if (draw(0, 2) == 0)
        lost.insert(stage);
    driver_.interrupt(draw(0, limits_.stages), lost);
  }

  void lose_the_epoch() {
    for (const auto id : driver_.work().clear())
      end(number(id));
    driver_.forget();
    BOOST_TEST(open_.empty());
    BOOST_TEST(driver_.work().pages().used() == 0u);
  }

  /// Runs until nothing is left; an upper bound on steps stands for "it ends".
  void settle() {
    for (int step = 0; step < 100'000; ++step) {
      const bool planned = driver_.plan().has_value();
      if (!planned && driver_.steps_in_flight() == 0)
        break;
      if (!planned || draw(0, 1) == 0)
        commit();
    }
    BOOST_TEST(open_.empty(), open_.size() << " requests never ended");
    driver_.tell_idle_releases();
    BOOST_TEST(driver_.slots_held() == 0u);
    BOOST_TEST(driver_.work().running() == 0u);
    BOOST_TEST(driver_.work().waiting() == 0u);
    BOOST_TEST(driver_.work().pages().available() == limits_.pages);
  }

  std::mt19937 random_;
  schedule_limits limits_;
  schedule_driver driver_;
  std::set<std::uint64_t> open_; ///< Requests that have not ended.
  std::uint64_t last_id_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(rule_60_and_61_hold_under_random_operations) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      storm{seed}.run(400);
    }
  }
}
