#include "actors/forecast/thread_hops.hpp"

#include "actors/forecast/passes.hpp"
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

constexpr int rounds = 300;

/// Half of the way there and back.
double measure_awake() {
  alignas(64) std::atomic<int> ball{0};
  const auto wait_for = [&](int value) {
    while (ball.load(std::memory_order_acquire) != value)
      std::this_thread::yield(); // A single core has to be given away.
  };
  std::thread other([&] {
    for (int round = 0; round < rounds; ++round) {
      wait_for(2 * round + 1);
      ball.store(2 * round + 2, std::memory_order_release);
    }
  });
  std::vector<double> taken;
  for (int round = 0; round < rounds; ++round) {
    const auto begun = clock::now();
    ball.store(2 * round + 1, std::memory_order_release);
    wait_for(2 * round + 2);
    taken.push_back(seconds_since(begun) / 2);
  }
  other.join();
  return quartile(std::move(taken));
}

/// A descriptor that is read until somebody writes: the sleep of an idle rank. Each word is read
/// once, also where a reader that has to wait for a core finds two.
class event_word {
public:
  event_word() : file_(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}

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

/// One way, to a thread that has slept for as long as a rank does between two steps: only then does
/// its core sleep as well.
result<double> measure_asleep() {
  constexpr int naps = 60;
  constexpr std::chrono::microseconds nap{500};
  const event_word word;
  if (!word.good())
    return error{errc::io_error, "no event descriptor to measure how soon a thread wakes"};
  std::vector<clock::time_point> sent(naps);
  std::vector<clock::time_point> heard(naps);
  std::thread sleeper([&] {
    for (auto& when : heard) {
      word.read();
      when = clock::now();
    }
  });
  for (auto& when : sent) {
    std::this_thread::sleep_for(nap);
    when = clock::now();
    word.write();
  }
  sleeper.join();
  std::vector<double> taken;
  for (int round = 0; round < naps; ++round)
    taken.push_back(std::chrono::duration<double>(heard[round] - sent[round]).count());
  return std::max(1e-8, quartile(std::move(taken)));
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
    return taken.empty() ? 0.0 : quartile(std::move(taken));
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
