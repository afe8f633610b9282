#include "transport/ucx/memory.hpp"

#include <utility>

namespace troupe::transport::ucx {

void descriptor_queue::put(void* descriptor) {
  const std::lock_guard guard(lock_);
  back_.push_back(descriptor);
  any_.store(true, std::memory_order_release);
}

std::vector<void*> descriptor_queue::take() {
  if (!any_.load(std::memory_order_acquire)) // The common case costs no lock.
    return {};
  std::vector<void*> taken;
  {
    const std::lock_guard guard(lock_);
    taken = std::exchange(back_, {});
    any_.store(false, std::memory_order_relaxed);
  }
  held_.fetch_sub(taken.size(), std::memory_order_relaxed);
  return taken;
}

} // namespace troupe::transport::ucx
