#include "compute/weights/shard_loader.hpp"

#include "compute/weights/convert.hpp"

#include <fmt/core.h>

namespace troupe::compute {

shard_loader::shard_loader(const model& source,
                           const shard_description& shard,
                           dtype hold,
                           device& where,
                           const load_progress& progress)
  : shard_(shard), hold_(hold), where_(where), progress_(progress),
    reader_(source.folder(), source.index()) {
  for (const auto& owned : shard_.tensors)
    by_name_.emplace(owned.name, &owned);
}

const owned_tensor& shard_loader::describe(std::string_view name) const {
  const auto found = by_name_.find(name);
  check(found != by_name_.end(), "a layer loads only what its shard owns");
  return *found->second;
}

result<shard_reader::part> shard_loader::take(const owned_tensor& owned) {
  auto part = reader_.read(owned);
  if (part)
    digests_.push_back({owned.name, owned.rows, owned.columns, part->digest});
  return part;
}

void shard_loader::finish(const owned_tensor& owned) {
  done_bytes_ += owned.stored_bytes;
  if (progress_)
    progress_(done_bytes_, shard_.stored_bytes);
}

result<std::unique_ptr<matrix>> shard_loader::packed(std::span<const std::string> names) {
  std::vector<weight_source> sources;
  for (const auto& name : names) {
    auto part = take(describe(name));
    if (!part)
      return part.error();
    sources.push_back(std::move(part->source));
    sources.back().name = fmt::format("tensor '{}'", name);
  }
  auto made = where_.pack(sources, hold_);
  if (!made)
    return made.error();
  held_bytes_ += (*made)->bytes();
  for (const auto& name : names) {
    reader_.release(describe(name));
    finish(describe(name));
  }
  return made;
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

result<std::unique_ptr<matrix>> shard_loader::table(std::string_view name) {
  const auto& owned = describe(name);
  auto part = take(owned);
  if (!part)
    return part.error();
  auto made = where_.table(part->source);
  if (!made)
    return with_context(fmt::format("tensor '{}'", name), made.error());
  held_bytes_ += (*made)->bytes();
  finish(owned);
  return made;
}

result<device_vector> shard_loader::vector(std::span<const std::string> names) {
  std::size_t elements = 0;
  for (const auto& name : names)
    elements += describe(name).columns.size();
  auto memory = where_.allocate(elements * sizeof(float));
  if (!memory)
    return with_context(fmt::format("tensor '{}'", names.front()), memory.error());
  auto rest = memory->as<float>();
  for (const auto& name : names) {
    const auto& owned = describe(name);
    auto part = take(owned);
    if (!part)
      return part.error();
    convert_to_f32(part->source.data, owned.stored, rest.first(owned.columns.size()));
    rest = rest.subspan(owned.columns.size());
    finish(owned);
  }
  held_bytes_ += memory->size();
  return device_vector{*std::move(memory)};
}

load_report shard_loader::report() const {
  return {.bytes_read = reader_.bytes_read(), .bytes_held = held_bytes_, .digests = digests_};
}

} // namespace troupe::compute
