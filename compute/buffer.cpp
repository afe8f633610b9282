#include "compute/buffer.hpp"

#include <fmt/core.h>

#include <cstdlib>

namespace troupe::compute {

result<buffer> buffer::allocate(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const auto rounded = (bytes + alignment - 1) / alignment * alignment;
  buffer made;
  if (rounded == 0)
    return made;
  auto* region = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (region == nullptr)
    return error{errc::out_of_memory, fmt::format("cannot allocate {} bytes", bytes)};
  made.data_ = region;
  made.size_ = bytes;
  made.owner_ = std::shared_ptr<void>(region, [](void* p) { std::free(p); });
  return made;
}

buffer buffer::adopt(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner) {
  buffer made;
  made.data_ = data;
  made.size_ = bytes;
  made.owner_ = std::move(owner);
  return made;
}

} // namespace troupe::compute
