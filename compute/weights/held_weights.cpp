#include "compute/weights/held_weights.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace troupe::compute {

held_weights::name held_weights::name_of(std::string_view holding,
                                         std::span<const owned_tensor* const> parts) {
  name made(holding);
  for (const auto* part : parts)
    made += fmt::format(" {}[{}-{}, {}-{}]",
                        part->name,
                        part->rows.begin,
                        part->rows.end,
                        part->columns.begin,
                        part->columns.end);
  return made;
}

void held_weights::add(name of, held_weight weight) {
  weights_.insert_or_assign(std::move(of), std::move(weight));
}

const held_weight* held_weights::find(const name& of) const {
  const auto found = weights_.find(of);
  return found == weights_.end() ? nullptr : &found->second;
}

void held_weights::keep_only(const shard_description& shard) {
  std::unordered_map<std::string_view, const owned_tensor*> owned;
  for (const auto& tensor : shard.tensors)
    owned.emplace(tensor.name, &tensor);
  std::erase_if(weights_, [&](const auto& entry) {
    const auto& parts = entry.second.parts;
    return !std::all_of(parts.begin(), parts.end(), [&](const loaded_digest& part) {
      const auto found = owned.find(part.tensor);
      return found != owned.end() && found->second->rows == part.rows
             && found->second->columns == part.columns;
    });
  });
}

} // namespace troupe::compute
