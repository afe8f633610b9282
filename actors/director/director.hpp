#pragma once
// The director: membership, the plan, epochs. It decides what all ranks must decide alike, and
// never touches a token. One in a cluster, on the head, on the framework's pool.

#include "actors/conductor/conductor.hpp"
#include "actors/director/membership.hpp"
#include "actors/messages.hpp"
#include "actors/plan/plan.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

/// The conductor as the director knows it. Filled in after both are spawned and before any node can
/// say hello.
struct conductor_place {
  conductor_actor handle;
  byte_string address; ///< Of its transport.
};

/// What the director is given at birth. Pointers outlive it.
struct director_setup {
  const cluster_settings* settings = nullptr;
  cluster_plan plan; ///< Of all seats.
  /// The plan on these nodes alone (make_plan).
  std::function<result<cluster_plan>(const cluster_settings& settings,
                                     const std::vector<std::size_t>& nodes)>
    replan;
  node_hello reference; ///< The head's own; the others must agree with it.
  std::shared_ptr<conductor_place> conductor;
  conductor_board* board = nullptr;
  /// Called once, when the director has ended; with the reason when the cluster failed.
  std::function<void(result<void>)> on_end;
};

director_actor spawn_director(caf::actor_system& system, director_setup setup);

} // namespace troupe::actors
