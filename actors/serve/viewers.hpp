#pragma once
// Whoever watches the cluster: streams of events that all get the same.

#include "actors/serve/http.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::actors::serve {

/// Any thread.
class viewers : public std::enable_shared_from_this<viewers> {
public:
  static constexpr std::size_t most = 64;

  /// Begins its stream. False: there are `most` already, or it is over; nothing was answered.
  bool add(const exchange_handle& exchange);

  void tell(const std::string& data);

  bool empty() const;

  /// Every stream ends, and none begins any more.
  void close();

private:
  void drop(const http_exchange* which);

  mutable std::mutex mutex_;
  std::map<const http_exchange*, exchange_handle> all_;
  bool closed_ = false;
};

} // namespace troupe::actors::serve
