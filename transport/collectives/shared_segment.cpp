#include "transport/collectives/shared_segment.hpp"

#include <fmt/core.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::transport {

namespace {

constexpr std::size_t page = 4096;

/// Sealed to its size, so that no holder can cut off the memory under another's feet.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

using secret = std::array<std::uint64_t, 2>;

/// What describe() gives, as it lies in memory: the reader is on the same host.
struct description {
  std::int64_t creator = 0;
  std::int64_t descriptor = 0;
  std::uint64_t bytes = 0;
  secret proof{}; ///< The segment's first page holds the same: process ids are used again.
};

static_assert(sizeof(description) == 40);

error failed(const char* call) {
  const int cause = errno;
  return {cause == ENOMEM || cause == ENOSPC ? errc::out_of_memory : errc::io_error,
          fmt::format("shared segment: {}: {}", call, std::strerror(cause))};
}

class file_guard {
public:
  explicit file_guard(int file) : file_(file) {}

  ~file_guard() {
    if (file_ >= 0)
      ::close(file_);
  }

  file_guard(const file_guard&) = delete;
  file_guard& operator=(const file_guard&) = delete;

  int get() const noexcept { return file_; }

  int take() noexcept { return std::exchange(file_, -1); }

private:
  int file_;
};

} // namespace

result<shared_segment> shared_segment::map(int file, std::size_t whole) {
  void* mapping = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapping == MAP_FAILED)
    return failed("mmap");
  shared_segment made;
  made.mapping_ = static_cast<std::byte*>(mapping);
  made.data_ = made.mapping_ + page;
  made.size_ = whole - page;
  return made;
}

result<shared_segment> shared_segment::create(std::size_t bytes) {
  file_guard file(::memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0)
    return failed("memfd_create");
  const auto whole = page + (bytes + page - 1) / page * page;
  if (::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
    return failed("ftruncate");
  if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0)
    return failed("F_ADD_SEALS");
  auto made = map(file.get(), whole);
  if (!made)
    return made;
  secret proof;
  if (::getrandom(proof.data(), sizeof proof, 0) != static_cast<ssize_t>(sizeof proof))
    return failed("getrandom");
  std::memcpy(made->mapping_, proof.data(), sizeof proof);
  made->size_ = bytes;
  made->descriptor_ = file.get();
  made->creator_ = ::getpid();
  made->file_ = file.take();
  return made;
}

result<shared_segment> shared_segment::open(std::span<const std::byte> told) {
  description where;
  if (told.size() != sizeof where)
    return error{errc::invalid_argument,
                 fmt::format("description of a shared segment has {} bytes, not {}",
                             told.size(),
                             sizeof where)};
  std::memcpy(&where, told.data(), sizeof where);
  const auto path = fmt::format("/proc/{}/fd/{}", where.creator, where.descriptor);
  // Whatever lies there now must not block the open or be changed by it.
  file_guard file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0)
    return error{errc::not_found, fmt::format("shared segment {}: {}", path, std::strerror(errno))};
  const error other{errc::mismatch, fmt::format("{} is not the segment that was told", path)};

  struct stat found {};

  const auto whole = page + (where.bytes + page - 1) / page * page;
  if (::fcntl(file.get(), F_GET_SEALS) != seals || ::fstat(file.get(), &found) != 0
      || static_cast<std::uint64_t>(found.st_size) != whole || where.bytes > whole)
    return other;
  auto made = map(file.get(), whole);
  if (!made)
    return made;
  if (std::memcmp(made->mapping_, where.proof.data(), sizeof where.proof) != 0)
    return other;
  made->size_ = where.bytes;
  made->creator_ = where.creator;
  made->descriptor_ = where.descriptor;
  return made;
}

std::vector<std::byte> shared_segment::describe() const {
  description where;
  where.creator = creator_;
  where.descriptor = descriptor_;
  where.bytes = size_;
  std::memcpy(where.proof.data(), mapping_, sizeof where.proof);
  std::vector<std::byte> told(sizeof where);
  std::memcpy(told.data(), &where, sizeof where);
  return told;
}

void shared_segment::release() noexcept {
  if (mapping_ != nullptr)
    ::munmap(mapping_, page + (size_ + page - 1) / page * page);
  if (file_ >= 0)
    ::close(file_);
  mapping_ = nullptr;
  file_ = -1;
}

shared_segment::shared_segment(shared_segment&& other) noexcept {
  *this = std::move(other);
}

shared_segment& shared_segment::operator=(shared_segment&& other) noexcept {
  if (this == &other)
    return *this;
  release();
  file_ = std::exchange(other.file_, -1);
  mapping_ = std::exchange(other.mapping_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  creator_ = other.creator_;
  descriptor_ = other.descriptor_;
  return *this;
}

shared_segment::~shared_segment() {
  release();
}

} // namespace troupe::transport
