#pragma once
// Who belongs to the cluster: which node may join, what it must agree on with the others, who is
// here, missing or lost. Plain data of the director; no actor, no clock of its own.

#include "actors/messages.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class membership {
public:
  using time_point = std::chrono::steady_clock::time_point;

  struct member {
    std::string state = "missing"; ///< "missing", "joined", "lost", "drained".
    bool leaving = false;          ///< It is drained: gets no work, and ends when it has none.
    std::string reason = "it never said hello";
    node_hello hello;
    std::optional<node_actor> handle; ///< While joined.
    time_point last_beat{};
    std::vector<rank_gauge> gauges;
    std::map<rank_id, time_point> moved; ///< When its progress last grew.
  };

  /// A rank that makes no progress.
  struct still_rank {
    std::size_t node = 0;
    rank_gauge gauge;
  };

  /// `reference`: the hello of the head itself; what the others must agree on.
  membership(const cluster_settings& settings, node_hello reference);

  /// Whether a node may come in, and its position in the file. Errors (for the node's own log, and
  /// kept as the reason of its absence): mismatch (protocol, settings, model, tokenizer, weights:
  /// both are printed), not_found (no such node), not_now (a living node has the name: addresses).
  result<std::size_t> admit(const node_hello& hello);

  /// Nodes were added to the settings.
  void grow() { members_.resize(settings_.nodes.size()); }

  /// Takes a node in that was admitted.
  void join(std::size_t index, const node_hello& hello, const node_actor& handle, time_point now);

  /// A node whose process is gone; nothing when the handle is not a member (any more).
  std::optional<std::size_t> lose(const caf::actor_addr& who, const std::string& reason);

  /// The position of a node that is here, by its actor.
  std::optional<std::size_t> find(const caf::actor_addr& who) const;

  /// False when the node is no member (any more): it was given up while it was silent.
  bool beat(const node_beat& what, time_point now);

  /// A joined node that has been silent for longer than `bound`.
  std::optional<std::size_t> silent(time_point now, std::chrono::milliseconds bound) const;

  /// A rank that has made no progress for longer than `bound` in the middle of a step, and waits
  /// for nobody else.
  std::optional<still_rank> stuck(time_point now, std::chrono::milliseconds bound) const;

  /// A rank that waits for others in the middle of a step, when nobody at all has made progress for
  /// longer than `bound`.
  std::optional<still_rank> stalled(time_point now, std::chrono::milliseconds bound) const;

  /// Nobody at all has made progress for longer than `bound`.
  bool all_still(time_point now, std::chrono::milliseconds bound) const;

  /// The director itself has not looked for a while: nobody's silence until now counts.
  void forgive(time_point now);

  /// Whether each node that is no spare has joined.
  bool all_here() const;

  /// The nodes that are here, without those that are to leave.
  std::vector<bool> available() const;

  /// The nodes that are not here, with address and reason, for people.
  std::string missing() const;

  const std::vector<member>& members() const { return members_; }

  member& at(std::size_t node) { return members_[node]; }

private:
  result<void> agree(const node_hello& hello) const;

  const cluster_settings& settings_;
  node_hello reference_;
  std::map<std::string, std::pair<std::string, std::string>> samples_; ///< Tensor: digest, node.
  std::vector<member> members_;
};

} // namespace troupe::actors
