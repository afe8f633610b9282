#pragma once
// The rank: owns a shard of the weights, its share of the state, and its phase. Lives on its own
// reactor, and is that thread: it drives its wires and its arithmetic.

#include "actors/faults.hpp"
#include "actors/messages.hpp"
#include "actors/rank/board.hpp"
#include "actors/rank/recorder.hpp"
#include "actors/wires/neighbours.hpp"
#include "actors/wires/reactor.hpp"
#include "compute/device.hpp"
#include "compute/grammar/constraint.hpp"
#include "compute/model.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace troupe::actors {

/// What a rank is given at birth. Pointers outlive it.
struct rank_setup {
  rank_id rank{};
  std::shared_ptr<const compute::model> model;
  std::shared_ptr<compute::constraint_maker> grammars; ///< Of the node's tokenizer.
  compute::held_types hold = dtype::f32;
  dtype wire = dtype::f32;
  std::size_t max_rows = 1;    ///< Of one step.
  bool keep_boundaries = true; ///< Whether rows sent to the next stage are kept (boundary_log).
  std::string device = "cpu";
  const cluster_settings* settings = nullptr;
  std::string transports; ///< That the node may use, in the words of UCX_TLS.
  compute::device_options device_options;
  std::chrono::milliseconds step_deadline{};
  std::chrono::milliseconds connect_deadline{};
  rank_board* board = nullptr;
  neighbours* here = nullptr;
  fault_desk* faults = nullptr;
  recorder* last_deeds = nullptr;
  transport::transport* wires = nullptr;
  reactor* home = nullptr;
  node_actor node; ///< Hears rank_loaded, rank_joined and rank_fault.
};

/// Spawns a rank on its reactor; call it on the reactor's thread before run().
rank_actor spawn_rank(caf::actor_system& system, rank_setup setup);

} // namespace troupe::actors
