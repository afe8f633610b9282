#pragma once
// Memory that UCX and we hand to each other: operations that live until their callback, and receive
// descriptors that buffers keep and that go back on the worker's thread.

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

namespace troupe::transport::ucx {

/// Objects with stable addresses that are used again and again. One thread.
template <class Object>
class pool {
public:
  Object& take() {
    if (free_.empty()) {
      all_.emplace_back();
      return all_.back();
    }
    auto* object = free_.back();
    free_.pop_back();
    return *object;
  }

  void put(Object& object) { free_.push_back(&object); }

private:
  std::deque<Object> all_;
  std::vector<Object*> free_;
};

/// Receive descriptors on their way back to UCX, and how many are out. put() on any thread, the
/// rest on the worker's.
class descriptor_queue {
public:
  /// UCX gives out as many descriptors as arrive and does not shrink again: beyond this many,
  /// payloads are copied instead.
  static constexpr std::size_t most_held = 4096;

  bool full() const noexcept { return held_.load(std::memory_order_relaxed) >= most_held; }

  void lend() noexcept { held_.fetch_add(1, std::memory_order_relaxed); }

  void put(void* descriptor);

  /// Those that came back since the last call.
  std::vector<void*> take();

private:
  std::atomic<std::size_t> held_ = 0;
  std::atomic<bool> any_ = false;
  std::mutex lock_;
  std::vector<void*> back_;
};

} // namespace troupe::transport::ucx
