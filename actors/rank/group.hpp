#pragma once
// A rank's tensor-parallel group: which wires it reduces over, and the memory that members of one
// host share.

#include "actors/rank/board.hpp"
#include "actors/rank/recorder.hpp"
#include "actors/rank/tracer.hpp"
#include "compute/collective.hpp"
#include "compute/faults/fault_injector.hpp"
#include "transport/collectives/endpoint_collective.hpp"
#include "transport/collectives/shared_memory_collective.hpp"
#include "transport/collectives/shared_segment.hpp"
#include "transport/transport.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace troupe::actors {

/// What a rank must know to join its group.
struct group_place {
  epoch_id epoch{};
  std::size_t tensor_rank = 0;
  std::vector<rank_address> members;    ///< Of the group, by tensor rank; own entry included.
  std::chrono::milliseconds deadline{}; ///< Of one operation.
};

/// Whether all members can and may share memory.
bool share_memory(const std::vector<rank_address>& members);

/// One rank's membership. Owned by the rank's thread.
class tensor_group {
public:
  /// Stands in before the first epoch: has a size, refuses to compute.
  static tensor_group unjoined(std::size_t rank, std::size_t size);

  /// Over shared memory where all members share it, otherwise over the rank's transport,
  /// which must be connected to the other members. Operations show on `board` that they wait, add
  /// up their time there, and end when the epoch is fenced there; each is noted. `faults` may be
  /// nullptr.
  static result<tensor_group> join(const group_place& place,
                                   transport::transport& wires,
                                   rank_board& board,
                                   recorder& last_deeds,
                                   tracer& trace,
                                   compute::fault_injector* faults);

  compute::collective& operations() { return *operations_; }

  /// A frame of kind collective from the rank's transport.
  void accept(transport::peer_key from, transport::frame&& received);

  /// This rank gives up: the others need not wait for it in an operation.
  void abort(const error& why);

  /// A member's wires are gone.
  void member_down(transport::peer_key peer, const error& why);

private:
  std::unique_ptr<compute::collective> wire_;             ///< Null for a group of one.
  transport::endpoint_collective* over_frames_ = nullptr; ///< The same, if it goes over frames.
  transport::shared_memory_collective* over_memory_ = nullptr; ///< The same, if over memory.
  std::unique_ptr<compute::collective> faulty_; ///< Around it, where there are faults.
  std::unique_ptr<compute::collective> operations_;
};

/// The memory of a group of `size` members, which its first member makes; nothing for a group of
/// one.
result<std::optional<transport::shared_segment>> make_group_segment(std::size_t size);

} // namespace troupe::actors
