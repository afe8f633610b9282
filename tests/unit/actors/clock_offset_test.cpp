// Two clocks that differ, over a line of uneven delays.

#include "actors/node/clock_offset.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <random>

using troupe::actors::clock_offset;

namespace {

/// Beats every 100 ms over a line with `least` to `most` nanoseconds a way.
clock_offset
after_beats(std::int64_t offset, std::uint64_t least, std::uint64_t most, std::uint64_t drift = 0) {
  std::mt19937 random(7);
  std::uniform_int_distribution<std::uint64_t> delay(least, most);
  clock_offset made;
  std::uint64_t now = 5'000'000'000;
  for (std::uint64_t beat = 0; beat < 300; ++beat, now += 100'000'000) {
    const auto there = now + delay(random);
    const auto here = there + delay(random);
    made.hear(now,
              static_cast<std::uint64_t>(static_cast<std::int64_t>(there) + offset) + beat * drift,
              here);
  }
  return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_offset_is_found_to_within_what_is_said) {
  for (const std::int64_t offset : {3'000'000'000'000L, -4'000'000'000L, 900'000L}) {
    const auto found = after_beats(offset, 20'000, 5'000'000);
    const auto wrong = std::abs(found.offset_ns() - offset);
    BOOST_TEST(wrong <= static_cast<std::int64_t>(found.uncertain_ns()));
    BOOST_TEST(found.uncertain_ns() < 1'500'000u); // the best of many, not the mean
  }
}

BOOST_AUTO_TEST_CASE(processes_of_one_host_have_one_clock) {
  BOOST_TEST(after_beats(0, 20'000, 5'000'000).offset_ns() == 0);
}

BOOST_AUTO_TEST_CASE(a_clock_that_drifts_is_followed) {
  // 20 us a beat are 200 parts in a million, more than any clock; over all 300 beats that is 6 ms.
  const auto found = after_beats(1'000'000'000, 20'000, 25'000, 20'000);
  const auto last = 1'000'000'000 + 299 * 20'000;
  BOOST_TEST(std::abs(found.offset_ns() - last) < 2'100'000); // within the window's drift
}

BOOST_AUTO_TEST_CASE(nothing_is_known_before_the_first_answer) {
  clock_offset none;
  BOOST_TEST(!none.known());
  none.hear(10, 500, 5); // an answer before its beat is none
  BOOST_TEST(!none.known());
  none.hear(10, 500, 20);
  BOOST_TEST(none.known());
  BOOST_TEST(none.offset_ns() == 485);
  BOOST_TEST(none.uncertain_ns() == 5u);
}
