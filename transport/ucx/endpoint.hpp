#pragma once
// One peer: what waits to be sent to it, and what came from it in the order in which it was sent.
// Owned by a transport, used on its thread; all of UCX goes through the worker.
//
// Credits. A message costs its payload (large ones, which wait at their sender until they are
// pulled, cost nothing) and a fixed amount. A sender has at most `credit_window` of cost under way
// that its peer has not consumed; every frame, or a frame of its own when none is due, tells how
// much was consumed. A frame is consumed when it is handed to the owner, so credits never wait for
// anything but progress().

#include "transport/session.hpp"
#include "transport/ucx/worker.hpp"

#include <optional>

namespace troupe::transport::ucx {

/// What precedes the frame's header in an active message: the number of the sender's link and the
/// cost that it has consumed of ours.
struct envelope {
  link_number link = 0;
  std::uint64_t consumed = 0;
};

envelope read_envelope(std::span<const std::byte> header);

/// Opens its link in the session; the owner ends that when it removes the endpoint.
class endpoint {
public:
  endpoint(worker& home,
           session& rules,
           const ucx_options& options,
           transport_counters& counters,
           peer_key peer,
           wire& to);
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  peer_key peer() const noexcept { return peer_; }

  wire& to() noexcept { return to_; }

  /// Proves the token; advance() says it again when the peer has to know that it was heard.
  void say_hello();

  /// Posts a frame or lets it wait; errors as transport::send.
  result<void> send(frame outgoing);

  /// The next frame meets it.
  void disturb_next(wire_fault how, std::uint64_t seed) { disturbance_.set(how, seed); }

  /// Posts the last frame of this link.
  void say_goodbye();

  bool said_goodbye() const noexcept { return said_goodbye_; }

  /// The peer consumed so much; a number that cannot be is ignored.
  void credit(std::uint64_t consumed);

  /// A frame that the session admitted. True = the arrival is kept. Called by the arrival handler.
  bool put(const frame_header& header, const arrival& from);

  /// The next frame in the peer's order, when it is complete.
  std::optional<frame> next();

  /// Sends what may be sent, receives what may be received, tells what was consumed.
  void advance();

  /// Breaks the link; what was complete by then is still handed out by next().
  void fail(error why);

  /// Why the link is of no use any more; nullopt = in order.
  std::optional<error> failure() const;

  bool drained() const noexcept { return waiting_.empty() && to_.posted == 0; }

private:
  struct slot {
    frame content;
    std::shared_ptr<rendezvous> pending; ///< Set until the payload of a large frame is here.
    bool ready = false;
  };

  frame_header complete(frame_header header, std::uint64_t payload_bytes, std::uint64_t sequence);
  void post(const frame_header& header, compute::buffer payload);
  bool may_leave(const frame& next) const;
  void leave(frame next);
  void queue(frame leaving);
  void flush();
  void pull();
  void settle(slot& first);
  void tell_consumed();
  bool intact(const frame& received);
  void abandon_slots();

  worker& home_;
  session& rules_;
  const ucx_options& options_;
  transport_counters& counters_;
  const peer_key peer_;
  wire& to_;
  const link_number link_;

  std::uint64_t sequence_ = 0;
  std::uint64_t sent_cost_ = 0;
  std::uint64_t acknowledged_cost_ = 0;
  std::deque<frame> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool said_goodbye_ = false;
  wire_disturbance disturbance_;

  std::deque<slot> slots_;
  std::size_t moving_bytes_ = 0; ///< Of large payloads that are under way or not handed on.
  std::uint64_t consumed_cost_ = 0;
  std::uint64_t told_cost_ = 0;
  std::optional<error> failure_;
};

} // namespace troupe::transport::ucx
