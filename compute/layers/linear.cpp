#include "compute/layers/linear.hpp"

namespace troupe::compute {
namespace {

std::vector<std::string> with_ending(const std::vector<std::string>& paths, const char* ending) {
  std::vector<std::string> names;
  for (const auto& path : paths)
    names.push_back(path + ending);
  return names;
}

} // namespace

result<linear>
linear::load(shard_loader& loader, const std::vector<std::string>& paths, bool with_bias) {
  auto weight = loader.packed(with_ending(paths, ".weight"));
  if (!weight)
    return weight.error();
  if (!with_bias)
    return linear{*std::move(weight), {}};
  auto bias = loader.vector(with_ending(paths, ".bias"));
  if (!bias)
    return bias.error();
  return linear{*std::move(weight), *std::move(bias)};
}

} // namespace troupe::compute
