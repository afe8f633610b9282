#include "actors/serve/viewers.hpp"

#include <utility>
#include <vector>

namespace troupe::actors::serve {

bool viewers::add(const exchange_handle& exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || all_.size() >= most)
      return false;
    all_.emplace(exchange.get(), exchange);
  }
  exchange->begin_events();
  exchange->on_gone([here = weak_from_this(), which = exchange.get()] {
    if (const auto self = here.lock())
      self->drop(which);
  });
  return true;
}

/// Without the lock: an answer may find while it is told that its client is gone.
void viewers::tell(const std::string& data) {
  std::vector<exchange_handle> now;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, one] : all_)
      now.push_back(one);
  }
  for (const auto& one : now)
    one->send_event(data);
}

bool viewers::empty() const {
  const std::lock_guard lock(mutex_);
  return all_.empty();
}

void viewers::close() {
  std::map<const http_exchange*, exchange_handle> now;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    now.swap(all_);
  }
  for (const auto& [key, one] : now)
    one->finish();
}

void viewers::drop(const http_exchange* which) {
  const std::lock_guard lock(mutex_);
  all_.erase(which);
}

} // namespace troupe::actors::serve
