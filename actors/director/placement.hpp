#pragma once
// Which nodes hold the seats of the plan: each node of the file that is not a spare owns one, in
// the order of the file. A seat whose owner is away is taken by a spare, or stays empty; then the
// plan has fewer stages. Plain data of the director.

#include "config/settings.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe::actors {

class placement {
public:
  /// The settings outlive it; nodes may be added to them.
  explicit placement(const cluster_settings& settings);

  /// A seat for a node that came later, if it is no spare; or without one again.
  void add(std::size_t node);
  void remove(std::size_t node);

  /// Fills seats from the nodes that are available, by position in settings.nodes. Who sits stays;
  /// an empty seat goes to its owner first, then to a spare with as many ranks.
  void refill(const std::vector<bool>& available);

  bool full() const;

  /// The holders in the order of their seats, as far as they make whole stages.
  std::vector<std::size_t> holders() const;

  /// Stages that holders() make.
  std::size_t stages() const;

private:
  struct seat {
    std::size_t owner = 0;
    std::optional<std::size_t> holder;
  };

  bool is_seated(std::size_t node) const;

  const cluster_settings& settings_;
  std::vector<seat> seats_;
};

} // namespace troupe::actors
