#pragma once
// Collectives of ranks on one host, through a segment of their own: 5 times faster at 8 KiB than
// messages. Each member copies its values into a slot, raises its flag, waits for the flags of the
// others and adds the slots in member order. Slots are used in turn, even steps and odd steps: who
// raises a flag for step n + 1 has read all of step n, so nobody waits before writing.

#include "compute/collective.hpp"
#include "transport/collectives/operation.hpp"
#include "transport/collectives/shared_segment.hpp"

#include <memory>
#include <vector>

namespace troupe::transport {

class shared_memory_collective final : public compute::collective {
public:
  /// Bytes of a segment for a group of `members`.
  static std::size_t segment_bytes(std::size_t members);

  /// Member `rank` of `members` over a segment of segment_bytes(members) that served no other
  /// group. Every member is made with a handle of its own. Fails with invalid_argument when the
  /// segment is too small or rank >= members, mismatch when it serves a group of another size.
  static result<std::unique_ptr<shared_memory_collective>> make(shared_segment segment,
                                                                std::size_t rank,
                                                                std::size_t members,
                                                                const collective_options& options);

  std::size_t rank() const noexcept override { return rank_; }

  std::size_t size() const noexcept override { return members_; }

  result<void> all_reduce_sum(std::span<float> values) override;
  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t> counts,
                          std::span<float> all) override;
  result<void> barrier() override;

  /// Ends the group for all members: their present and later calls fail with `why`. The first
  /// reason counts. Any thread.
  void abort(const error& why);

private:
  struct board;

  shared_memory_collective(shared_segment segment,
                           std::size_t rank,
                           std::size_t members,
                           const collective_options& options);

  result<void> begin(const operation& called);
  result<void> fail(error why);
  result<void> meet(const operation& called);
  result<void> meet_again(const operation& called);
  template <class Ready>
  result<void> wait(const operation& called, Ready ready);

  void finish_step() noexcept { ++step_; }

  float* slot(std::size_t member) const;
  float* sums() const;
  void reduce(std::size_t begin, std::size_t end, float* out) const;
  result<void> reduce_together(const operation& called, std::span<float> values);

  shared_segment segment_;
  const std::size_t rank_;
  const std::size_t members_;
  const collective_options options_;
  const bool crowded_; ///< More members than cores: waiting gives the core away at once.
  board* board_;
  std::vector<operation> calls_; ///< Of each member, in the step in progress.
  std::uint64_t step_ = 0;
  std::uint64_t number_ = 0;
  std::chrono::steady_clock::time_point due_;
  std::optional<error> poison_;
};

} // namespace troupe::transport
