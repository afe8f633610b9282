#pragma once
// Who of a team does what: each thread has a part of its own, and whoever is through takes over
// from the others. A core that is slower than the rest, or that somebody else uses for a while,
// then holds up nobody for longer than an item takes.

#include "config/topology.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::compute::cpu {

class dealer {
public:
  explicit dealer(std::size_t most_threads) : parts_(most_threads) {}

  /// Deals items 0 ... count - 1 to so many threads, each a run of neighbours (split_part). Called
  /// by the leader, while nobody takes.
  void deal(std::size_t count, std::size_t threads) {
    check(threads <= parts_.size() && count < one_begin, "items are dealt to the team");
    threads_ = threads;
    for (std::size_t thread = 0; thread < threads; ++thread) {
      const auto own = split_part(count, threads, thread);
      parts_[thread].left.store(own.begin * one_begin + own.end, std::memory_order_relaxed);
    }
  }

  /// The next items for a thread, `most` at most: from the front of its own part, or else the last
  /// ones of whoever has most left, half of them. Empty when all are taken. Any thread of the team.
  range take(std::size_t thread, std::size_t most) {
    auto& own = parts_[thread].left;
    auto left = own.load(std::memory_order_relaxed);
    while (const auto count = std::min(count_of(left), most)) {
      const auto begin = left / one_begin;
      if (own.compare_exchange_weak(left, left + count * one_begin, std::memory_order_relaxed))
        return {begin, begin + count};
    }
    return take_over(most);
  }

private:
  // What is left of a part is one word: the first item in the upper half, the one behind the last
  // in the lower half. No order of memory hangs on it: what the items stand for was there before.
  static constexpr std::uint64_t one_begin = std::uint64_t{1} << 32;

  struct alignas(64) share {
    std::atomic<std::uint64_t> left{0};
  };

  static std::size_t count_of(std::uint64_t left) noexcept {
    return left % one_begin - left / one_begin;
  }

  range take_over(std::size_t most) {
    for (;;) {
      share* richest = nullptr;
      std::uint64_t left = 0;
      for (std::size_t i = 0; i < threads_; ++i)
        if (const auto found = parts_[i].left.load(std::memory_order_relaxed);
            count_of(found) > count_of(left)) {
          richest = &parts_[i];
          left = found;
        }
      if (richest == nullptr)
        return {};
      const auto count = std::min((count_of(left) + 1) / 2, most);
      if (richest->left.compare_exchange_strong(left, left - count, std::memory_order_relaxed)) {
        const std::size_t end = left % one_begin;
        return {end - count, end};
      }
    }
  }

  std::vector<share> parts_;
  std::size_t threads_ = 0;
};

} // namespace troupe::compute::cpu
