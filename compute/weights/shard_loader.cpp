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

result<shard_loader::opened> shard_loader::open(const parts& of) {
  opened all;
  for (const auto* owned : of) {
    auto part = reader_.open(*owned);
    if (!part)
      return part.error();
    all.push_back(*std::move(part));
  }
  return all;
}

void shard_loader::add_digests(const parts& of, const opened& read, held_weight& into) {
  for (std::size_t i = 0; i < of.size(); ++i)
    into.parts.push_back({of[i]->name, of[i]->rows, of[i]->columns, read[i]->digest()});
}

result<std::shared_ptr<const matrix>> shard_loader::packed(std::span<const std::string> names) {
  const auto of = describe_all(names);
  auto weight = give(to_string(hold_), of, [&](held_weight& made) -> result<void> {
    auto read = open(of);
    if (!read)
      return read.error();
    std::vector<weight_source> sources;
    for (const auto& part : *read)
      sources.push_back(part->source());
    auto packed = where_.pack(sources, hold_);
    if (!packed)
      return packed.error();
    made.rows = *std::move(packed);
    made.bytes = made.rows->bytes();
    add_digests(of, *read, made);
    for (const auto& part : *read)
      part->release({0, part->source().rows});
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
  const parts of{&describe(name)};
  auto weight = give("table", of, [&](held_weight& made) -> result<void> {
    auto read = open(of);
    if (!read)
      return read.error();
    auto source = read->front()->source();
    source.watcher = nullptr; // What looks up later reads as it likes.
    auto table = where_.table(source);
    if (!table)
      return with_context(source.name, table.error());
    read->front()->pass_all();
    made.rows = *std::move(table);
    made.bytes = made.rows->bytes();
    add_digests(of, *read, made);
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
    auto read = open(of);
    if (!read)
      return read.error();
    auto rest = memory->as<float>();
    for (const auto& part : *read) {
      const auto& source = part->source();
      convert_to_f32(source.data, source.stored, rest.first(source.columns));
      rest = rest.subspan(source.columns);
      part->pass_all();
    }
    add_digests(of, *read, made);
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
