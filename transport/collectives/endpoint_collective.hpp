#pragma once
// Collectives over frames, for groups that span hosts. Short vectors go from each member to each;
// long ones are added in parts (each member adds one part and sends it to all). Either way a sum is
// added in member order by somebody who holds all summands, so that each member has the same bits.
//
// Frames of kind `collective` use the header so: tag = number of the operation, step = elements,
// flags = kind (bits 0-7), phase (8-15) and the digest of an all_gather's counts (32-63).

#include "compute/collective.hpp"
#include "transport/buffer_pool.hpp"
#include "transport/collectives/operation.hpp"
#include "transport/transport.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe::transport {

/// Used on the thread of its transport, which it drives while it waits. The owner's frame handler
/// hands it every frame of kind `collective` (accept), and the owner's down handler every member
/// that is down (member_down); both are called from within the transport's progress().
class endpoint_collective final : public compute::collective {
public:
  /// Member `rank` of the group `members`, named by their keys, each linked to `wires` (but
  /// oneself). `wires` outlives the collective. Fails with invalid_argument when rank is not in the
  /// group.
  static result<std::unique_ptr<endpoint_collective>> make(transport& wires,
                                                           std::vector<peer_key> members,
                                                           std::size_t rank,
                                                           const collective_options& options);

  std::size_t rank() const noexcept override { return rank_; }

  std::size_t size() const noexcept override { return members_.size(); }

  result<void> all_reduce_sum(std::span<float> values) override;
  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t> counts,
                          std::span<float> all) override;
  result<void> barrier() override;

  /// Takes a frame of kind collective; false when its sender is no member.
  bool accept(peer_key from, frame&& received);

  /// Ends the group when the peer is a member: calls in progress and later ones fail.
  void member_down(peer_key peer, const error& why);

  /// Ends the group for this member, and tells the others. The first reason counts.
  void abort(const error& why);

private:
  enum class phase : std::uint8_t { values = 0, sums = 1, failed = 2 };

  endpoint_collective(transport& wires,
                      std::vector<peer_key> members,
                      std::size_t rank,
                      const collective_options& options);

  result<void> begin(const operation& called);
  result<void> fail(error why);
  result<compute::buffer> copy_out(std::span<const float> values);
  result<void> post(std::size_t member, const operation& called, phase in, compute::buffer payload);
  result<void> collect(const operation& called, phase in);
  void sleep();
  result<void> exchange(const operation& called, phase in, const compute::buffer& payload);
  result<void> check_calls(const operation& called);
  result<void> check_phase(const operation& called, phase in);
  result<std::span<const float>>
  part_of(std::size_t member, std::size_t elements, const operation& called) const;
  result<void> reduce_directly(const operation& called, std::span<float> values);
  result<void> reduce_in_parts(const operation& called, std::span<float> values);
  result<void> add(std::span<const float> mine, const operation& called, std::span<float> sum);

  transport& wires_;
  const std::vector<peer_key> members_;
  const std::size_t rank_;
  const collective_options options_;
  buffer_pool buffers_;
  std::vector<std::deque<frame>> arrived_; ///< Of each member, in its order.
  std::vector<frame> current_;             ///< Of each member, for the phase in progress.
  std::chrono::microseconds looking_;      ///< Before a waiting member sleeps.
  std::uint64_t number_ = 0;
  std::chrono::steady_clock::time_point due_;
  std::optional<error> poison_;
};

} // namespace troupe::transport
