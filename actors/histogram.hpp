#pragma once
// Distributions of a cluster that serves: one thread adds, any thread reads.

#include "actors/messages/observing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::actors {

/// Upper bounds of buckets, each included in its own.
inline constexpr std::array<std::uint64_t, 18> latency_bounds_us{250,
                                                                 500,
                                                                 1'000,
                                                                 2'500,
                                                                 5'000,
                                                                 10'000,
                                                                 25'000,
                                                                 50'000,
                                                                 100'000,
                                                                 250'000,
                                                                 500'000,
                                                                 1'000'000,
                                                                 2'500'000,
                                                                 5'000'000,
                                                                 10'000'000,
                                                                 30'000'000,
                                                                 60'000'000,
                                                                 300'000'000};
inline constexpr std::array<std::uint64_t, 11> size_bounds{
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

template <std::size_t Bounds>
class histogram {
public:
  explicit histogram(const std::array<std::uint64_t, Bounds>& bounds) : bounds_(bounds) {}

  /// Owner thread.
  void add(std::uint64_t value) noexcept {
    const auto place = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    add_to(counts_[static_cast<std::size_t>(place - bounds_.begin())], 1);
    add_to(sum_, value);
  }

  /// Any thread: may see a value in its bucket a moment before it is in the sum.
  tally read() const {
    tally told;
    for (const auto& count : counts_)
      told.counts.push_back(count.load(std::memory_order_relaxed));
    told.sum = sum_.load(std::memory_order_relaxed);
    return told;
  }

private:
  using counter = std::atomic<std::uint64_t>;

  static void add_to(counter& to, std::uint64_t amount) noexcept {
    to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  const std::array<std::uint64_t, Bounds>& bounds_;
  std::array<counter, Bounds + 1> counts_{};
  counter sum_{0};
};

using latency_histogram = histogram<latency_bounds_us.size()>;
using size_histogram = histogram<size_bounds.size()>;

} // namespace troupe::actors
