#include "compute/cpu/memory.hpp"

#include <fmt/core.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace troupe::compute::cpu {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

} // namespace

result<buffer> map_memory(std::size_t bytes, const char* purpose) {
  if (bytes == 0)
    return buffer{};
  const bool large = bytes >= large_region;
  const auto whole = large ? (bytes + huge_page - 1) / huge_page * huge_page : bytes;
  // An anonymous mapping starts at a small page; the slack lets large ones line up.
  const std::size_t mapped = whole + (large ? huge_page : 0);
  if (mapped < bytes)
    return error{errc::out_of_memory, fmt::format("{} of {} bytes: too large", purpose, bytes)};
  void* start = mmap(
    nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    return error{errc::out_of_memory,
                 fmt::format("{} of {} bytes: {}", purpose, bytes, std::strerror(errno))};
  auto owner = std::shared_ptr<void>(start, [mapped](void* p) { munmap(p, mapped); });
  auto address = reinterpret_cast<std::uintptr_t>(start);
  if (large) {
    address = (address + huge_page - 1) / huge_page * huge_page;
    // Advice only: without large pages the region works as well, a little slower.
    (void)madvise(reinterpret_cast<void*>(address), whole, MADV_HUGEPAGE);
  }
  return buffer::adopt(reinterpret_cast<std::byte*>(address), bytes, std::move(owner));
}

result<buffer> arena::take(std::size_t bytes, const char* purpose) {
  constexpr std::size_t region_bytes = std::size_t{64} << 20;
  constexpr std::size_t line = 64;
  if (bytes > region_.size() - used_) {
    // What is left of the old region was never touched: it takes addresses, but no memory.
    auto region = map_memory(std::max(bytes, region_bytes), purpose);
    if (!region)
      return region.error();
    region_ = std::move(*region);
    used_ = 0;
  }
  auto* start = region_.data() + used_;
  used_ = std::min(region_.size(), used_ + (bytes + line - 1) / line * line);
  return buffer::adopt(start, bytes, std::make_shared<buffer>(region_));
}

float* scratch::floats(std::size_t count) {
  if (region_.size() < count * sizeof(float)) {
    region_ = {}; // Give back before asking for more.
    auto grown = map_memory(count * sizeof(float), "working memory");
    check(grown.has_value(), "the machine has the working memory of an operation");
    region_ = std::move(*grown);
  }
  return reinterpret_cast<float*>(region_.data());
}

} // namespace troupe::compute::cpu
