#pragma once
// Memory that processes of one host, or threads of one process, share. It has no name: it lives as
// long as somebody holds it, so nothing is left when its holders are killed.

#include "config/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::transport {

/// Owner of one mapping. Movable; used by one holder, the memory by all.
class shared_segment {
public:
  /// A new segment of zeros. Fails with out_of_memory or io_error.
  static result<shared_segment> create(std::size_t bytes);

  /// The segment that `description` names; its creator must still hold it, and host_identity() must
  /// be equal. Fails with not_found when the creator is gone, mismatch when another segment lies
  /// there, invalid_argument for bytes that are no description.
  static result<shared_segment> open(std::span<const std::byte> description);

  shared_segment(shared_segment&& other) noexcept;
  shared_segment& operator=(shared_segment&& other) noexcept;
  ~shared_segment();

  /// How others open it; travels over the control channel. 40 bytes.
  std::vector<std::byte> describe() const;

  /// The memory, aligned to a page.
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

private:
  shared_segment() = default;

  static result<shared_segment> map(int file, std::size_t whole);
  void release() noexcept;

  int file_ = -1;
  std::byte* mapping_ = nullptr; ///< A page with the segment's secret, then the data.
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t creator_ = 0; ///< Process and descriptor through which others open it.
  std::int64_t descriptor_ = -1;
};

} // namespace troupe::transport
