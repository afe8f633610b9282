#include "config/topology.hpp"

#include <fmt/core.h>

#include <limits>

namespace troupe {

range split_part(std::size_t count, std::size_t parts, std::size_t index) {
  check(parts >= 1, "a split has at least one part");
  check(index < parts, "the index of a part is below the number of parts");
  const auto base = count / parts;
  const auto remainder = count % parts;
  const auto begin = index * base + (index < remainder ? index : remainder);
  return {begin, begin + base + (index < remainder ? 1 : 0)};
}

result<std::vector<range>> split_evenly(std::size_t count, std::size_t parts) {
  if (parts == 0)
    return error{errc::invalid_argument, "cannot split into 0 parts; 1 or more would work"};
  if (count < parts)
    return error{errc::invalid_argument,
                 fmt::format("cannot split {} units into {} parts: {} of them would be empty; "
                             "1 to {} parts would work",
                             count,
                             parts,
                             parts - count,
                             count)};
  std::vector<range> ranges;
  ranges.reserve(parts);
  for (std::size_t i = 0; i < parts; ++i)
    ranges.push_back(split_part(count, parts, i));
  return ranges;
}

result<topology> topology::make_numbering(const axes& sizes) {
  std::size_t product = 1;
  constexpr std::size_t limit = std::numeric_limits<std::uint32_t>::max();
  for (const auto size : {sizes.data, sizes.pipeline, sizes.tensor, sizes.expert}) {
    if (size == 0)
      return error{errc::invalid_argument,
                   fmt::format("each axis needs at least one rank; found data {}, pipeline {}, "
                               "tensor {}, expert {}",
                               sizes.data,
                               sizes.pipeline,
                               sizes.tensor,
                               sizes.expert)};
    if (size > limit / product)
      return error{errc::invalid_argument,
                   fmt::format("the product of the axes (data {}, pipeline {}, tensor {}, expert "
                               "{}) is more than {} ranks",
                               sizes.data,
                               sizes.pipeline,
                               sizes.tensor,
                               sizes.expert,
                               limit)};
    product *= size;
  }
  return topology{sizes};
}

result<topology> topology::make(const axes& sizes) {
  if (sizes.data > 1)
    return error{errc::unsupported,
                 fmt::format("data parallelism is not implemented: data = {}, only 1 works",
                             sizes.data)};
  if (sizes.expert > 1)
    return error{errc::unsupported,
                 fmt::format("expert parallelism is not implemented: expert = {}, only 1 works",
                             sizes.expert)};
  return make_numbering(sizes);
}

std::size_t topology::world() const noexcept {
  return sizes_.data * sizes_.pipeline * sizes_.tensor * sizes_.expert;
}

coordinates topology::place(rank_id rank) const {
  std::size_t rest = number(rank);
  coordinates where;
  where.expert = rest % sizes_.expert;
  rest /= sizes_.expert;
  where.tensor = rest % sizes_.tensor;
  rest /= sizes_.tensor;
  where.pipeline = rest % sizes_.pipeline;
  where.data = rest / sizes_.pipeline;
  return where;
}

result<coordinates> topology::locate(rank_id rank) const {
  if (number(rank) >= world())
    return error{errc::invalid_argument,
                 fmt::format("rank {} is outside of this topology of {} ranks",
                             number(rank),
                             world())};
  return place(rank);
}

rank_id topology::rank_at(const coordinates& where) const {
  check(where.data < sizes_.data && where.pipeline < sizes_.pipeline
          && where.tensor < sizes_.tensor && where.expert < sizes_.expert,
        "coordinates lie inside of the axes");
  const auto index
    = ((where.data * sizes_.pipeline + where.pipeline) * sizes_.tensor + where.tensor)
        * sizes_.expert
      + where.expert;
  return static_cast<rank_id>(index);
}

std::vector<rank_id> topology::tensor_peers(rank_id rank) const {
  auto where = place(rank);
  std::vector<rank_id> peers;
  for (where.tensor = 0; where.tensor < sizes_.tensor; ++where.tensor)
    peers.push_back(rank_at(where));
  return peers;
}

std::vector<rank_id> topology::pipeline_peers(rank_id rank) const {
  auto where = place(rank);
  std::vector<rank_id> peers;
  for (where.pipeline = 0; where.pipeline < sizes_.pipeline; ++where.pipeline)
    peers.push_back(rank_at(where));
  return peers;
}

std::vector<rank_id> topology::expert_peers(rank_id rank) const {
  auto where = place(rank);
  std::vector<rank_id> peers;
  for (where.expert = 0; where.expert < sizes_.expert; ++where.expert)
    peers.push_back(rank_at(where));
  return peers;
}

} // namespace troupe
