#pragma once
// Actors of this process by their place in the cluster, so that ranks that share a process hand
// buffers over instead of sending frames. Any thread.

#include "actors/messages.hpp"

#include <map>
#include <mutex>
#include <optional>

namespace troupe::actors {

class neighbours {
public:
  /// The ranks of this process, as an epoch numbers them.
  void set(std::map<rank_id, rank_actor> ranks) {
    const std::lock_guard guard{mutex_};
    ranks_ = std::move(ranks);
  }

  void add(conductor_actor handle) {
    const std::lock_guard guard{mutex_};
    conductor_ = std::move(handle);
  }

  /// Nothing when that rank lives in another process.
  std::optional<rank_actor> find(rank_id rank) const {
    const std::lock_guard guard{mutex_};
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? std::nullopt : std::optional{found->second};
  }

  std::optional<conductor_actor> conductor() const {
    const std::lock_guard guard{mutex_};
    return conductor_;
  }

  /// Handles keep actors alive; a process that ends lets go of them.
  void clear() {
    const std::lock_guard guard{mutex_};
    ranks_.clear();
    conductor_.reset();
  }

private:
  mutable std::mutex mutex_;
  std::map<rank_id, rank_actor> ranks_;
  std::optional<conductor_actor> conductor_;
};

} // namespace troupe::actors
