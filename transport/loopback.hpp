#pragma once
// Transport between ranks of one process: frames go through the receiver's queue, payloads by
// reference. Ends may belong to different threads.

#include "transport/transport.hpp"

#include <memory>

namespace troupe::transport {

struct loopback_options {
  /// Bytes of payload that may wait at one peer before send() answers overloaded; one frame may
  /// always wait, whatever its size.
  std::size_t queued_bytes_limit = std::size_t{128} << 20;
  /// Send a digest with each frame. One that arrives is always checked. Off: nothing between two
  /// ends of a process can damage a frame but a fault on purpose.
  bool digest = false;
  /// How long a peer may take to say hello after connect().
  std::chrono::milliseconds connect_deadline{10'000};
};

struct loopback_registry;

/// The meeting place of the ends within a process. Any thread.
class loopback_hub {
public:
  loopback_hub();
  ~loopback_hub();
  loopback_hub(const loopback_hub&) = delete;
  loopback_hub& operator=(const loopback_hub&) = delete;

  /// A new end; it is used on one thread and may outlive the hub. Fails with io_error when the
  /// system gives no event descriptor.
  result<std::unique_ptr<transport>> make_end(const loopback_options& options = {});

private:
  std::shared_ptr<loopback_registry> registry_;
};

} // namespace troupe::transport
