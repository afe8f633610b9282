#pragma once
// A file in memory, read-only, brought in page by page as it is touched.

#include "config/result.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace troupe::compute {

/// Any thread may read. The file must not be cut while it is mapped: the kernel answers a touch
/// beyond its end with SIGBUS.
class mapped_file {
public:
  /// Fails with not_found or io_error, naming the path and the system's reason.
  static result<std::shared_ptr<const mapped_file>> open(const std::filesystem::path& path);

  ~mapped_file();
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Brings these bytes in at once: less work for the kernel than a page at a time. They may be
  /// read without.
  void populate(std::size_t offset, std::size_t size) const noexcept;

  /// Tells the kernel that these bytes will not be read again: their pages stop counting as memory
  /// of this process. Reading them again is allowed and brings them back.
  void release(std::size_t offset, std::size_t size) const noexcept;

private:
  mapped_file(std::filesystem::path path, const std::byte* data, std::size_t size);

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
};

} // namespace troupe::compute
