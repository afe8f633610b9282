#pragma once
// Memory for payloads that come and go: a region that was freed is taken again, warm, instead of
// being mapped and faulted in anew for each large message.

#include "compute/buffer.hpp"

#include <memory>

namespace troupe::transport {

/// Any thread may free a buffer, also after the pool itself is gone; take() is called on any
/// thread.
class buffer_pool {
public:
  /// Regions that nobody uses are kept up to `idle_bytes_limit` bytes together.
  explicit buffer_pool(std::size_t idle_bytes_limit = std::size_t{128} << 20);

  /// A region of exactly `bytes`, aligned to 64, with undefined content.
  /// Fails with out_of_memory, naming the size.
  result<compute::buffer> take(std::size_t bytes);

  /// Bytes of regions that are kept for later.
  std::size_t idle_bytes() const;

private:
  struct shelves;
  std::shared_ptr<shelves> shelves_;
};

} // namespace troupe::transport
