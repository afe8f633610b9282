#include "compute/cpu/kv_pages.hpp"

#include "compute/cpu/half.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace troupe::compute::cpu {

namespace {

// Vectors over head_dim may read past the last row of values; what they find there is not used.
constexpr std::size_t readable_beyond = 64 * sizeof(float);

/// Keys and values of one head for the new positions of one sequence.
template <class Held>
void store_head(kv_pages& cache,
                std::size_t layer,
                const sequence_rows& sequence,
                std::size_t head,
                tensor keys,
                tensor values) {
  const auto head_dim = cache.shape().head_dim;
  for (std::size_t i = 0; i < sequence.count; ++i) {
    const auto position = sequence.position + i;
    const auto page = sequence.pages[position / kv_page_tokens];
    const auto slot = position % kv_page_tokens;
    const float* key = keys.row(sequence.first_row + i) + head * head_dim;
    const float* value = values.row(sequence.first_row + i) + head * head_dim;
    auto* kept_keys = cache.keys<Held>(layer, page, head);
    auto* kept_values = cache.values_after(kept_keys) + slot * head_dim;
    for (std::size_t d = 0; d < head_dim; ++d)
      kept_keys[d * kv_page_tokens + slot] = from_float<Held>(key[d]);
    for (std::size_t d = 0; d < head_dim; ++d)
      kept_values[d] = from_float<Held>(value[d]);
  }
}

} // namespace

std::byte* kv_pages::page_of(std::size_t layer, page_id page) const {
  return with_format(shape_.held, [&](auto format) {
    return reinterpret_cast<std::byte*>(keys<decltype(format)>(layer, page, 0));
  });
}

void kv_pages::read_page(page_id page, const range& layers, std::span<std::byte> out) const {
  const auto bytes = page_bytes(std::size_t{1});
  check(out.size() == layers.size() * bytes, "attention state: a page of each of these layers");
  for (auto layer = layers.begin; layer < layers.end; ++layer)
    std::memcpy(out.data() + (layer - layers.begin) * bytes, page_of(layer, page), bytes);
}

void kv_pages::write_page(page_id page, const range& layers, std::span<const std::byte> from) {
  const auto bytes = page_bytes(std::size_t{1});
  check(from.size() == layers.size() * bytes, "attention state: a page of each of these layers");
  for (auto layer = layers.begin; layer < layers.end; ++layer)
    std::memcpy(page_of(layer, page), from.data() + (layer - layers.begin) * bytes, bytes);
}

result<std::unique_ptr<kv_pages>> make_kv_pages(const kv_shape& shape) {
  const auto page = kv_cache::page_bytes(shape);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(page, shape.pages, &bytes)
      || __builtin_add_overflow(bytes, readable_beyond, &bytes))
    return error{errc::out_of_memory,
                 fmt::format("attention state of {} pages of {} bytes: more than can be addressed",
                             shape.pages,
                             page)};
  auto memory = map_memory(bytes, "attention state");
  if (!memory)
    return memory.error();
  return std::make_unique<kv_pages>(shape, std::move(*memory));
}

void store_kv(execution& on,
              kv_pages& cache,
              std::size_t layer,
              const batch& rows,
              tensor keys,
              tensor values) {
  const auto& shape = cache.shape();
  const auto columns = shape.kv_heads * shape.head_dim;
  check(keys.columns == columns && values.columns == columns, "store_kv: heads of the cache");
  check(keys.rows == rows.rows() && values.rows == rows.rows(), "store_kv: rows of the batch");
  for (const auto& sequence : rows.sequences)
    check(sequence.pages.size() * kv_page_tokens >= sequence.position + sequence.count,
          "store_kv: a sequence has pages for its positions");
  with_format(shape.held, [&](auto format) {
    on.run(2 * keys.rows * columns, [&](std::size_t thread, std::size_t threads) {
      const auto heads = split_part(shape.kv_heads, threads, thread);
      for (const auto& sequence : rows.sequences)
        for (auto head = heads.begin; head < heads.end; ++head)
          store_head<decltype(format)>(cache, layer, sequence, head, keys, values);
    });
  });
}

} // namespace troupe::compute::cpu
