#pragma once
// The one place that calls ucp: a context, its worker, the wires to peers, what is sent and what
// arrives. Knows frames only as a header of fixed size with a payload. Used on its owner's thread;
// the last buffer that holds a receive descriptor may keep the worker alive beyond its owner.

#include "transport/buffer_pool.hpp"
#include "transport/ucx/memory.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <ucp/api/ucp.h>

#include <deque>
#include <list>

namespace troupe::transport::ucx {

/// The active message's header: link number, consumed bytes (endpoint.hpp), and the frame's header.
inline constexpr std::size_t envelope_bytes = wire_header_bytes - frame_header_bytes;
using wire_header = std::array<std::byte, wire_header_bytes>;

/// One ucp endpoint. Owned by the worker until it is shut and everything posted has completed.
struct wire {
  ucp_ep_h endpoint = nullptr;
  std::vector<std::byte> address;
  ucs_status_t status = UCS_OK; ///< The first failure.
  std::size_t posted = 0;       ///< Operations that UCX has not completed.
  std::size_t posted_bytes = 0; ///< Their payloads.
  std::size_t links = 0;        ///< Endpoints that use it now; it is kept for the next ones.
  link_info info;
  bool* happened = nullptr; ///< The worker's.
  bool shut = false;        ///< On its way out, by these steps:
  void* flushing = nullptr; ///< UCX's request that ends when all has left.
  bool flushed = false;
  void* closing = nullptr; ///< UCX's request while it closes by force.
};

/// An active message within the handler of arrivals; `data` is valid until the handler returns, or
/// until its descriptor is released when it was kept.
struct arrival {
  std::span<const std::byte> header;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool rendezvous = false; ///< data is a descriptor: pull() or drop() it later.
  bool persistent = false; ///< data may be kept.
};

/// A payload that waits at its sender, or is on its way from there.
struct rendezvous {
  enum class state : std::uint8_t { held, moving, ready, failed };
  state now = state::held;
  void* descriptor = nullptr;
  ucs_status_t status = UCS_OK;
  compute::buffer payload; ///< Empty while held.
};

class worker : public std::enable_shared_from_this<worker> {
public:
  /// Looks at an arrival; true = it was kept (take, or a rendezvous to be pulled or dropped).
  using arrival_handler = std::function<bool(const arrival&)>;

  static result<std::shared_ptr<worker>> make(const ucx_options& options);

  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  void on_arrival(arrival_handler handler) { on_arrival_ = std::move(handler); }

  result<std::vector<std::byte>> address() const;

  /// A wire to the worker at `address`; the one that exists, when it is in order.
  result<wire*> open(const std::vector<std::byte>& address);

  /// Closes the wires that no endpoint uses, after all that was posted has left. (Those that failed
  /// are closed by progress().)
  void shut_idle();

  /// Whether every wire that was shut is closed.
  bool all_shut() const;

  /// Posts a message. Header and payload live until UCX is done with them. Failures show in
  /// to.status.
  void post(wire& to, const wire_header& header, compute::buffer payload);

  /// The payload of an eager arrival: its descriptor where that can be kept, a copy otherwise
  /// (`copied` tells). Sets `kept`, which the handler has to return.
  result<compute::buffer> take(const arrival& from, bool& kept, bool& copied);

  /// Starts to receive a held payload of `bytes`; progress() completes it. Fails without memory.
  result<void> pull(const std::shared_ptr<rendezvous>& payload, std::size_t bytes);

  /// Lets the sender of a held payload go on without it.
  void drop(rendezvous& payload);

  std::size_t progress();

  int event_fd() const noexcept { return event_fd_; }

  bool arm();

  /// Set when something arrived, completed or failed; cleared by the caller.
  bool happened = false;

private:
  friend struct callbacks;

  struct send_operation {
    worker* home = nullptr;
    wire* to = nullptr;
    wire_header header;
    compute::buffer payload;
  };

  struct receive_operation {
    worker* home = nullptr;
    std::shared_ptr<rendezvous> payload;
  };

  worker() = default;

  result<void> start(const ucx_options& options);
  result<void> start_worker();
  void finished(send_operation& done, ucs_status_t status);
  void finished(receive_operation& done, ucs_status_t status);
  void release_descriptors();
  bool step_to_close(wire& to);
  void flush(wire& to);
  void close(wire& to);
  void reap();
  link_info describe(const wire& to) const;

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  arrival_handler on_arrival_;
  std::list<wire> wires_;
  pool<send_operation> sends_;
  pool<receive_operation> receives_;
  buffer_pool buffers_;
  descriptor_queue descriptors_;
};

} // namespace troupe::transport::ucx
