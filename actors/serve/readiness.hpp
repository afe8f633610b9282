#pragma once
// Whether the cluster can serve, since when, and if not, who is in the way. Judged from what the
// director says a few times a second; no actor, no clock of its own.

#include "actors/messages/clients.hpp"

#include <chrono>
#include <map>
#include <string>

namespace troupe::actors::serve {

class readiness {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A node that is silent for longer than `bound` is in the way, and a rank that computes without
  /// progress.
  readiness(std::chrono::milliseconds bound, time_point now);

  /// What the director says.
  void hear(const cluster_status& known, time_point now);

  /// It did not answer a question of the time `asked` so far.
  void miss(time_point asked, time_point now);

  bool ready() const noexcept { return reason_.empty(); }

  /// Why not; for people, with the stage or node that is in the way where one is.
  const std::string& reason() const noexcept { return reason_; }

  /// Of the present state, ready or not.
  std::chrono::milliseconds since(time_point now) const;

private:
  struct moving {
    std::uint64_t value = 0;
    time_point changed{};
  };

  void conclude(std::string reason, time_point now);
  std::string find_silent(const cluster_status& known) const;
  std::string find_stuck(const cluster_status& known, time_point now);

  std::chrono::milliseconds bound_;
  std::string reason_ = "the cluster is starting";
  time_point since_;
  std::map<rank_id, moving> progress_; ///< Of ranks.
};

/// "stage 1, rank 2 on node 'c'": how the API names a rank.
std::string name_rank(const rank_status& rank);

} // namespace troupe::actors::serve
