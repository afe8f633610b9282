#pragma once
// A collective among threads of the test, with the sums in member order. A member that does not
// come within the deadline is a failure, not a hang.

#include "compute/collective.hpp"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::tests {

/// Counts what was called; shared by the members.
struct collective_counts {
  std::size_t all_reduce = 0;
  std::size_t all_gather = 0;
  std::size_t gathered_bytes = 0; ///< Of all members' parts.
};

class thread_group {
public:
  explicit thread_group(std::size_t size) : parts_(size) {}

  std::size_t size() const { return parts_.size(); }

  /// Calls of member 0.
  const collective_counts& counts() const { return counts_; }

  /// The handle of one member; the group outlives it.
  std::unique_ptr<compute::collective> member(std::size_t rank) {
    return std::make_unique<handle>(*this, rank);
  }

private:
  using parts = std::vector<std::vector<float>>;

  class handle final : public compute::collective {
  public:
    handle(thread_group& group, std::size_t rank) : group_(group), rank_(rank) {}

    std::size_t rank() const noexcept override { return rank_; }

    std::size_t size() const noexcept override { return group_.size(); }

    result<void> all_reduce_sum(std::span<float> values) override {
      if (rank_ == 0)
        ++group_.counts_.all_reduce;
      return group_.meet(rank_, {values.begin(), values.end()}, [&](const parts& all) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = all[0][i];
          for (std::size_t member = 1; member < all.size(); ++member)
            values[i] += all[member][i];
        }
      });
    }

    result<void> all_gather(std::span<const float> mine,
                            std::span<const std::size_t> counts,
                            std::span<float> all) override {
      if (rank_ == 0) { // the others do not touch the counts
        ++group_.counts_.all_gather;
        group_.counts_.gathered_bytes += all.size_bytes();
      }
      check(mine.size() == counts[rank_], "a member brings what it announced");
      return group_.meet(rank_, {mine.begin(), mine.end()}, [&](const parts& given) {
        std::size_t next = 0;
        for (const auto& part : given)
          for (const auto value : part)
            all[next++] = value;
        check(next == all.size(), "the parts fill the whole");
      });
    }

    result<void> barrier() override {
      return group_.meet(rank_, {}, [](const parts&) {});
    }

  private:
    thread_group& group_;
    std::size_t rank_;
  };

  /// Everyone brings a part, then everyone reads all parts, then everyone goes on.
  result<void>
  meet(std::size_t rank, std::vector<float> part, const std::function<void(const parts&)>& read) {
    parts_[rank] = std::move(part);
    if (!arrive())
      return error{errc::timed_out, "a member of the thread group did not come"};
    read(parts_);
    if (!arrive())
      return error{errc::timed_out, "a member of the thread group did not leave"};
    return {};
  }

  bool arrive() {
    std::unique_lock lock(mutex_);
    const auto round = round_;
    if (++arrived_ == parts_.size()) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return true;
    }
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return round_ != round; });
  }

  parts parts_;
  collective_counts counts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
};

} // namespace troupe::tests
