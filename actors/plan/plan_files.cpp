// find_tensors (actors/plan/plan.hpp): are the files that a node needs where it looks for them?
#include "actors/plan/plan.hpp"
#include "compute/weights/tensor_index.hpp"

#include <fmt/core.h>

namespace troupe::actors {

result<std::size_t> find_tensors(const cluster_settings& settings,
                                 const cluster_plan& plan,
                                 const compute::model& model,
                                 std::size_t node) {
  std::size_t tensors = 0;
  for (const auto& rank : plan.ranks) {
    if (rank.node != node)
      continue;
    for (const auto& tensor : rank.shard.tensors) {
      if (const auto there = model.index().find(tensor.name); !there)
        return with_context(
          fmt::format("node '{}', rank {}", settings.nodes[node].name, number(rank.rank)),
          there.error());
      ++tensors;
    }
  }
  return tensors;
}

} // namespace troupe::actors
