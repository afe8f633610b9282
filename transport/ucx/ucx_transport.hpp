#pragma once
// Transport between processes over UCX active messages: shared memory, TCP or RDMA, as UCX finds.
// One transport owns one UCX context and worker and belongs to one thread, which makes it, uses it
// and destroys it. Received buffers may be freed on any thread, also after the transport is gone.
//
// When a peer died that was reached through shared memory, the worker may be stuck for all peers
// (UCX 1.13: the dead may have reserved a place in our queue for ever). Who gets on_down for such a
// peer and wants to go on makes a new transport and tells its new address.

#include "transport/transport.hpp"

#include <memory>

namespace troupe::transport {

struct ucx_options {
  /// UCX_TLS, for example "tcp" or "posix,sysv,cma,self"; empty = UCX's choice.
  std::string transports = {};
  /// UCX_NET_DEVICES, for example {"eth0"}; empty = all.
  std::vector<std::string> devices = {};
  /// Payload bytes that may be posted and not yet sent, per peer; one frame may always be.
  std::size_t queued_bytes_limit = std::size_t{256} << 20;
  /// Payload bytes of large messages of one peer that are received at the same time; further ones
  /// wait at the sender. One message may always be received, up to max_payload_bytes.
  std::size_t receive_window = std::size_t{64} << 20;
  /// Frames with a larger payload are refused before memory is taken for them.
  std::size_t max_payload_bytes = std::size_t{1} << 30;
  /// Send a digest with each frame. One that arrives is always checked.
  bool digest = false;
  /// How long a peer may take to say hello after connect().
  std::chrono::milliseconds connect_deadline{10'000};
};

/// Sets the defaults that UCX reads from the environment (values that are there win) and sends its
/// log lines to ours. Call it in main, before any other thread and any other function of this file.
void prepare_environment();

/// Fails with invalid_config when UCX knows none of the transports or devices.
result<std::unique_ptr<transport>> make_ucx_transport(const ucx_options& options);

/// A way of UCX to reach others from this host.
struct ucx_device {
  std::string transport; ///< For example "tcp".
  std::string device;    ///< For example "eth0".
};

/// What UCX finds on this host, in UCX's order.
result<std::vector<ucx_device>> list_ucx_devices();

/// For example "1.13.1".
std::string ucx_version();

} // namespace troupe::transport
