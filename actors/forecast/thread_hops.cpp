#include "actors/forecast/thread_hops.hpp"

#include "transport/collectives/shared_memory_collective.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;

constexpr int rounds = 300;

double seconds_since(clock::time_point begun) {
  return std::chrono::duration<double>(clock::now() - begun).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Half of the way there and back, `rounds` times; `there` and `back` are called on two threads.
template <class Send, class Echo>
double half_way(const Send& there_and_back, const Echo& echo) {
  std::thread other([&] {
    for (int round = 0; round < rounds; ++round)
      echo(round);
  });
  std::vector<double> taken;
  for (int round = 0; round < rounds; ++round) {
    const auto begun = clock::now();
    there_and_back(round);
    taken.push_back(seconds_since(begun) / 2);
  }
  other.join();
  return median(taken);
}

double measure_awake() {
  alignas(64) std::atomic<int> ball{0};
  const auto wait_for = [&](int value) {
    while (ball.load(std::memory_order_acquire) != value)
      std::this_thread::yield(); // A single core has to be given away.
  };
  return half_way(
    [&](int round) {
      ball.store(2 * round + 1, std::memory_order_release);
      wait_for(2 * round + 2);
    },
    [&](int round) {
      wait_for(2 * round + 1);
      ball.store(2 * round + 2, std::memory_order_release);
    });
}

/// A descriptor that is read until somebody writes: the sleep of an idle rank.
class event_word {
public:
  event_word() : file_(::eventfd(0, EFD_CLOEXEC)) {}

  ~event_word() { ::close(file_); }

  event_word(const event_word&) = delete;
  event_word& operator=(const event_word&) = delete;

  bool good() const { return file_ >= 0; }

  void write() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(file_, &one, sizeof(one));
  }

  void read() const {
    std::uint64_t value = 0;
    [[maybe_unused]] const auto got = ::read(file_, &value, sizeof(value));
  }

private:
  int file_;
};

result<double> measure_asleep() {
  const event_word there;
  const event_word back;
  if (!there.good() || !back.good())
    return error{errc::io_error, "no event descriptor to measure how soon a thread wakes"};
  return half_way(
    [&](int) {
      there.write();
      back.read();
    },
    [&](int) {
      there.read();
      back.write();
    });
}

/// Seconds of a sum of so many values on two members, each a thread.
result<double> measure_sum(std::size_t values) {
  using collective = transport::shared_memory_collective;
  auto segment = transport::shared_segment::create(collective::segment_bytes(2));
  if (!segment)
    return segment.error();
  auto opened = transport::shared_segment::open(segment->describe());
  if (!opened)
    return opened.error();
  auto first = collective::make(*std::move(segment), 0, 2, {});
  auto second = collective::make(*std::move(opened), 1, 2, {});
  if (!first || !second)
    return first ? second.error() : first.error();
  const auto sum = [&](collective& member) {
    std::vector<float> mine(values, 1.0f);
    std::vector<double> taken;
    for (int round = 0; round < rounds; ++round) {
      const auto begun = clock::now();
      if (!member.all_reduce_sum(mine))
        break;
      taken.push_back(seconds_since(begun));
      std::fill(mine.begin(), mine.end(), 1.0f);
    }
    return taken.empty() ? 0.0 : median(taken);
  };
  std::thread other([&] { sum(**second); });
  const auto taken = sum(**first);
  other.join();
  if (taken <= 0)
    return error{errc::unreachable, "two threads cannot add through shared memory"};
  return taken;
}

result<link_speed> measure_sums() {
  constexpr std::size_t few = 256;
  constexpr std::size_t many = 65'536;
  const auto small = measure_sum(few);
  const auto large = small ? measure_sum(many) : small;
  if (!large)
    return large.error();
  const auto byte_s = std::max(1e-13, (*large - *small) / ((many - few) * sizeof(float)));
  return link_speed{std::max(1e-8, *small - few * sizeof(float) * byte_s), 1 / byte_s};
}

} // namespace

result<thread_hops> measure_hops() {
  const auto asleep = measure_asleep();
  if (!asleep)
    return asleep.error();
  const auto sums = measure_sums();
  if (!sums)
    return sums.error();
  return thread_hops{std::max(1e-8, measure_awake()), *asleep, *sums};
}

} // namespace troupe::actors
