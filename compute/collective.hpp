#pragma once
// What the ranks of one tensor-parallel group compute together. Implementations live with the
// wires that carry them (transport/collectives); compute only names the operations.

#include "config/result.hpp"

#include <cstddef>
#include <span>

namespace troupe::compute {

/// One member's handle of a group. Every member calls the same operations in the same order with
/// matching sizes; implementations check operation, sequence number, count and epoch against
/// each other and answer a difference with errc::mismatch that names both ranks and operations.
/// A call returns when this member's result is there, or with timed_out / unreachable after the
/// configured deadline; after any failure the group is poisoned and every later call fails.
/// Owned by the rank's thread; calls block that thread.
class collective {
public:
  virtual ~collective() = default;

  virtual std::size_t rank() const noexcept = 0;
  virtual std::size_t size() const noexcept = 0;

  /// values[i] becomes the sum over the members of their values[i], added in member order
  /// 0, 1, 2 ...: each member holds the same bits (contract rule 67).
  virtual result<void> all_reduce_sum(std::span<float> values) = 0;

  /// Concatenates the members' parts in member order. counts[m] is the number of elements that
  /// member m brings (they may differ, contract rule 63); mine.size() == counts[rank()];
  /// all.size() == the sum of the counts.
  virtual result<void> all_gather(std::span<const float> mine,
                                  std::span<const std::size_t> counts,
                                  std::span<float> all) = 0;

  /// Returns when every member has called it.
  virtual result<void> barrier() = 0;
};

/// The group of one: every operation is the identity.
class solo_collective final : public collective {
public:
  std::size_t rank() const noexcept override { return 0; }

  std::size_t size() const noexcept override { return 1; }

  result<void> all_reduce_sum(std::span<float>) override { return {}; }

  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t>,
                          std::span<float> all) override {
    check(mine.size() == all.size(), "a group of one gathers what it brings");
    if (mine.data() != all.data())
      for (std::size_t i = 0; i < mine.size(); ++i)
        all[i] = mine[i];
    return {};
  }

  result<void> barrier() override { return {}; }
};

} // namespace troupe::compute
