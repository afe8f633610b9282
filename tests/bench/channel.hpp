#pragma once
// Two ways to move the same payloads between two processes, so that their times can be compared in
// one run: raw active messages of UCX, and the transport on top of them.

#include "compute/buffer.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::bench {

class channel {
public:
  virtual ~channel() = default;
  virtual std::vector<std::byte> address() = 0;
  virtual void connect(std::span<const std::byte> peer) = 0;
  virtual void post(const compute::buffer& payload) = 0;

  /// Progress once; how many messages came.
  virtual std::size_t receive() = 0;

  /// Whether all that was posted has left.
  virtual bool idle() = 0;
};

/// transports as in UCX_TLS; `self` is 0 or 1.
std::unique_ptr<channel> make_raw_channel(const std::string& transports);
std::unique_ptr<channel> make_transport_channel(const std::string& transports, unsigned self);

} // namespace troupe::bench
