#pragma once
// How the parts of a process end, or lose their head, told from their actors to the thread that
// waits in run_node. Any thread.

#include "actors/messages/membership.hpp"
#include "config/result.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

/// A node without a head, its ranks out of any epoch.
struct orphan {
  std::vector<held_shard> held;
  epoch_id last_epoch{};
};

class ending {
public:
  void lose_head(orphan left) {
    const std::lock_guard guard{mutex_};
    orphan_ = std::move(left);
  }

  /// Once for each head that was lost.
  std::optional<orphan> take_orphan() {
    const std::lock_guard guard{mutex_};
    return std::exchange(orphan_, std::nullopt);
  }

  /// The node's ranks begin to end; end_ranks() says that they have.
  void begin_ranks() {
    const std::lock_guard guard{mutex_};
    begun_ = std::chrono::steady_clock::now();
  }

  void end_ranks() {
    const std::lock_guard guard{mutex_};
    begun_.reset();
  }

  /// Since when the ranks have been ending, while they have not.
  std::optional<std::chrono::steady_clock::time_point> begun() {
    const std::lock_guard guard{mutex_};
    return begun_;
  }

  void tell(result<void> how) {
    const std::lock_guard guard{mutex_};
    if (!how && !failure_)
      failure_ = how.error();
    ++ended_;
    changed_.notify_all();
  }

  /// Whether `parts` parts have ended; waits up to `patience` for it.
  bool wait(int parts, std::chrono::milliseconds patience) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return ended_ >= parts; });
  }

  result<void> outcome() {
    const std::lock_guard guard{mutex_};
    return failure_ ? result<void>{*failure_} : result<void>{};
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int ended_ = 0;
  std::optional<std::chrono::steady_clock::time_point> begun_;
  std::optional<error> failure_;
  std::optional<orphan> orphan_;
};

} // namespace troupe::actors
