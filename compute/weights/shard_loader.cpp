#include "compute/weights/shard_loader.hpp"

#include "compute/weights/convert.hpp"

#include <fmt/core.h>

namespace troupe::compute {

shard_loader::shard_loader(const model& source,
                           const shard_description& shard,
                           dtype hold,
                           device& where,
                           const load_progress& progress,
                           held_weights held)
  : shard_(shard), hold_(hold), where_(where), progress_(progress),
    reader_(source.folder(), source.index()), held_(std::move(held)) {
  for (const auto& owned : shard_.tensors)
    by_name_.emplace(owned.name, &owned);
}

const owned_tensor& shard_loader::describe(std::string_view name) const {
  const auto found = by_name_.find(name);
  check(found != by_name_.end(), "a layer loads only what its shard owns");
  return *found->second;
}

shard_loader::parts shard_loader::describe_all(std::span<const std::string> names) const {
  parts found;
  for (const auto& name : names)
    found.push_back(&describe(name));
  return found;
}

template <class Load>
result<held_weight> shard_loader::give(std::string_view holding, const parts& of, Load load) {
  const auto name = held_weights::name_of(holding, of);
  held_weight weight;
  if (const auto* held = held_.find(name)) {
    weight = *held;
  } else if (result<void> loaded = load(weight); !loaded) {
    return loaded.error();
  }
  report_.bytes_held += weight.bytes;
  report_.digests.insert(report_.digests.end(), weight.parts.begin(), weight.parts.end());
  given_.add(name, weight);
  for (const auto* part : of) {
    done_bytes_ += part->stored_bytes;
    if (progress_)
      progress_(done_bytes_, shard_.stored_bytes);
  }
  return weight;
}

result<weight_source> shard_loader::read(const owned_tensor& owned, held_weight& into) {
  auto part = reader_.read(owned);
  if (!part)
    return part.error();
  into.parts.push_back({owned.name, owned.rows, owned.columns, part->digest});
  part->source.name = fmt::format("tensor '{}'", owned.name);
  return std::move(part->source);
}

result<std::shared_ptr<const matrix>> shard_loader::packed(std::span<const std::string> names) {
  const auto of = describe_all(names);
  auto weight = give(to_string(hold_), of, [&](held_weight& made) -> result<void> {
    std::vector<weight_source> sources;
    for (const auto* part : of) {
      auto source = read(*part, made);
      if (!source)
        return source.error();
      sources.push_back(*std::move(source));
    }
    auto packed = where_.pack(sources, hold_);
    if (!packed)
      return packed.error();
    made.rows = *std::move(packed);
    made.bytes = made.rows->bytes();
    for (const auto* part : of)
      reader_.release(*part);
    return {};
  });
  if (!weight)
    return weight.error();
  return weight->rows;
}

result<shard_loader::tied_matrix> shard_loader::tied(std::string_view name) {
  const auto& owned = describe(name);
  auto head = packed(name);
  if (!head)
    return head.error();
  tied_matrix made{nullptr, *std::move(head)};
  made.lookups = made.head;
  if (owned.stored == hold_)
    return made;
  auto in_place = reader_.locate(owned);
  if (!in_place)
    return in_place.error();
  auto lookups = where_.table(*in_place);
  if (!lookups)
    return with_context(fmt::format("tensor '{}'", name), lookups.error());
  made.lookups = *std::move(lookups);
  return made;
}

result<std::shared_ptr<const matrix>> shard_loader::table(std::string_view name) {
  const auto& owned = describe(name);
  auto weight = give("table", {&owned}, [&](held_weight& made) -> result<void> {
    auto source = read(owned, made);
    if (!source)
      return source.error();
    auto table = where_.table(*source);
    if (!table)
      return with_context(source->name, table.error());
    made.rows = *std::move(table);
    made.bytes = made.rows->bytes();
    return {};
  });
  if (!weight)
    return weight.error();
  return weight->rows;
}

result<device_vector> shard_loader::vector(std::span<const std::string> names) {
  const auto of = describe_all(names);
  std::size_t elements = 0;
  for (const auto* part : of)
    elements += part->columns.size();
  auto weight = give("vector", of, [&](held_weight& made) -> result<void> {
    auto memory = where_.allocate(elements * sizeof(float));
    if (!memory)
      return with_context(fmt::format("tensor '{}'", names.front()), memory.error());
    auto rest = memory->as<float>();
    for (const auto* part : of) {
      auto source = read(*part, made);
      if (!source)
        return source.error();
      convert_to_f32(source->data, part->stored, rest.first(part->columns.size()));
      rest = rest.subspan(part->columns.size());
    }
    made.values = *std::move(memory);
    made.bytes = made.values.size();
    return {};
  });
  if (!weight)
    return weight.error();
  return device_vector{std::move(weight->values)};
}

load_report shard_loader::report() const {
  auto made = report_;
  made.bytes_read = reader_.bytes_read();
  return made;
}

} // namespace troupe::compute
