#pragma once
// The attention state of a rank on the CPU: pages of 32 positions.

#include "compute/cpu/execution.hpp"
#include "compute/device.hpp"

namespace troupe::compute::cpu {

/// One region, [layer][page][kv head][keys, then values]. The keys of a page and head lie as
/// [head_dim][32 positions], so that neighbouring lanes are neighbouring keys and a score is one
/// chain over head_dim; its values as [32 positions][head_dim], so that lanes are dimensions. Held
/// is the C++ type of shape().held.
class kv_pages final : public kv_cache {
public:
  kv_pages(const kv_shape& shape, buffer memory) : shape_(shape), memory_(std::move(memory)) {}

  const kv_shape& shape() const noexcept override { return shape_; }

  std::size_t bytes() const noexcept override { return page_bytes(shape_) * shape_.pages; }

  void read_page(page_id page, const range& layers, std::span<std::byte> out) const override;
  void write_page(page_id page, const range& layers, std::span<const std::byte> from) override;

  template <class Held>
  Held* keys(std::size_t layer, page_id page, std::size_t head) const {
    check(sizeof(Held) == size_of(shape_.held), "attention state: read as what it is held as");
    check(layer < shape_.layers, "attention state: the layer is one of this rank");
    check(number(page) < shape_.pages, "attention state: the page lies in the cache");
    const auto slot = (layer * shape_.pages + number(page)) * shape_.kv_heads + head;
    return reinterpret_cast<Held*>(memory_.data()) + slot * 2 * plane();
  }

  /// The values that belong to these keys of a page and head.
  template <class Held>
  Held* values_after(Held* keys_of_page) const {
    return keys_of_page + plane();
  }

private:
  std::byte* page_of(std::size_t layer, page_id page) const;

  std::size_t plane() const noexcept { return shape_.head_dim * kv_page_tokens; }

  kv_shape shape_;
  buffer memory_;
};

/// All pages at once, as address space; memory is taken as they are written. Error: out_of_memory.
result<std::unique_ptr<kv_pages>> make_kv_pages(const kv_shape& shape);

void store_kv(
  execution& on, kv_pages& cache, std::size_t layer, const batch& rows, tensor keys, tensor values);

} // namespace troupe::compute::cpu
