#include "compute/weights/mapped_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::compute {
namespace {

error system_error(const std::filesystem::path& path, std::string_view doing, int code) {
  return {code == ENOENT ? errc::not_found : errc::io_error,
          fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(code))};
}

} // namespace

mapped_file::mapped_file(std::filesystem::path path, const std::byte* data, std::size_t size)
  : path_(std::move(path)), data_(data), size_(size) {}

mapped_file::~mapped_file() {
  if (data_ != nullptr)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return system_error(path, "open", errno);

  struct ::stat facts {};

  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    const int code = S_ISDIR(facts.st_mode) ? EISDIR : errno != 0 ? errno : EINVAL;
    ::close(descriptor);
    return system_error(path, "read", code);
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) {
      const int code = errno;
      ::close(descriptor);
      return system_error(path, "map", code);
    }
  }
  ::close(descriptor);
  return std::shared_ptr<const mapped_file>(
    new mapped_file(path, static_cast<const std::byte*>(data), size));
}

void mapped_file::populate(std::size_t offset, std::size_t size) const noexcept {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = offset / page * page;
  const auto last = std::min(offset + size, size_);
  if (data_ != nullptr && first < last) // An older kernel refuses: touches bring the pages in.
    (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_POPULATE_READ);
#endif
}

void mapped_file::release(std::size_t offset, std::size_t size) const noexcept {
  // Whole pages inside of the range only: its edges may share a page with bytes still in use.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (offset + page - 1) / page * page;
  const auto last = (offset + size) / page * page;
  if (data_ != nullptr && first < last)
    ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

} // namespace troupe::compute
