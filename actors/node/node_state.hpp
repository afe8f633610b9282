#pragma once
// What a node's actor knows: the ranks that it hosts, and the director that it reports to.

#include "actors/faults.hpp"
#include "actors/rank/rank.hpp"
#include "actors/wires/neighbours.hpp"
#include "actors/wires/reactor_thread.hpp"
#include "compute/model.hpp"
#include "config/settings.hpp"
#include "transport/loopback.hpp"

#include <functional>
#include <map>

namespace troupe::actors {

/// What a node's actor is given at birth. Pointers outlive it.
struct node_setup {
  const cluster_settings* settings = nullptr;
  std::size_t index = 0; ///< In settings->nodes.
  std::shared_ptr<const compute::model> model;
  std::shared_ptr<compute::constraint_maker> grammars; ///< Of the node's tokenizer.
  compute::held_types hold = dtype::f32;
  std::size_t max_rows = 1;
  std::size_t threads = 1; ///< Of each rank.
  reactor_options loop;
  std::uint64_t incarnation = 0;
  std::vector<fault> faults;        ///< Of the whole cluster.
  std::filesystem::path run_folder; ///< For what is written about faults.
  neighbours* here = nullptr;
  transport::loopback_hub* hub = nullptr; ///< Set where the whole cluster lives in this process.
  gateway_actor gateway;                  ///< While it lives, so does the head.
  /// Called when the head is gone and the ranks have left its epoch: with what they hold, and the
  /// epoch. Null: the node ends then.
  std::function<void(std::vector<held_shard>, epoch_id)> on_orphaned;
  /// Called once, when the node begins to end: a rank's thread that is stuck will keep it from it.
  std::function<void()> on_ending;
  /// Called once, when the node has ended; with the reason when it did not end in good order.
  std::function<void(result<void>)> on_end;
};

node_actor spawn_node(caf::actor_system& system, node_setup setup);

/// Makes the transport of a rank or of the conductor of this node; call it on the thread that will
/// own it, which owns `faults` too.
result<std::unique_ptr<transport::transport>> make_wires(const cluster_settings& settings,
                                                         std::size_t node,
                                                         transport::loopback_hub* hub,
                                                         const fault_desk& faults);

} // namespace troupe::actors
