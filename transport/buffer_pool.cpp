#include "transport/buffer_pool.hpp"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace troupe::transport {

namespace {

constexpr std::size_t alignment = 64;

/// Regions are powers of two from 2^6; shelf i holds those of 2^(6 + i) bytes.
constexpr std::size_t smallest_power = 6;
constexpr std::size_t shelf_count = 48 - smallest_power;

} // namespace

struct buffer_pool::shelves {
  explicit shelves(std::size_t limit) : idle_limit(limit) {}

  shelves(const shelves&) = delete;
  shelves& operator=(const shelves&) = delete;

  ~shelves() {
    for (const auto& shelf : free)
      for (void* region : shelf)
        std::free(region);
  }

  void* take(std::size_t shelf, std::size_t bytes) {
    {
      const std::lock_guard guard(lock);
      if (!free[shelf].empty()) {
        void* region = free[shelf].back();
        free[shelf].pop_back();
        idle -= bytes;
        return region;
      }
    }
    return std::aligned_alloc(alignment, bytes);
  }

  void put(std::size_t shelf, std::size_t bytes, void* region) {
    {
      const std::lock_guard guard(lock);
      if (idle + bytes <= idle_limit) {
        free[shelf].push_back(region);
        idle += bytes;
        return;
      }
    }
    std::free(region);
  }

  std::mutex lock;
  const std::size_t idle_limit;
  std::size_t idle = 0;
  std::array<std::vector<void*>, shelf_count> free;
};

buffer_pool::buffer_pool(std::size_t idle_bytes_limit)
  : shelves_(std::make_shared<shelves>(idle_bytes_limit)) {}

result<compute::buffer> buffer_pool::take(std::size_t bytes) {
  if (bytes == 0)
    return compute::buffer{};
  if (bytes > std::size_t{1} << (smallest_power + shelf_count - 1))
    return error{errc::out_of_memory, fmt::format("cannot allocate {} bytes", bytes)};
  const std::size_t rounded = std::bit_ceil(std::max(bytes, alignment));
  const auto shelf = static_cast<std::size_t>(std::countr_zero(rounded)) - smallest_power;
  void* region = shelves_->take(shelf, rounded);
  if (region == nullptr)
    return error{errc::out_of_memory, fmt::format("cannot allocate {} bytes", bytes)};
  std::shared_ptr<void> owner(region, [shelves = shelves_, shelf, rounded](void* freed) {
    shelves->put(shelf, rounded, freed);
  });
  return compute::buffer::adopt(static_cast<std::byte*>(region), bytes, std::move(owner));
}

std::size_t buffer_pool::idle_bytes() const {
  const std::lock_guard guard(shelves_->lock);
  return shelves_->idle;
}

} // namespace troupe::transport
