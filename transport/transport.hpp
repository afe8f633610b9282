#pragma once
// Frames between ranks. One transport belongs to one rank (or to the conductor) and is used from
// that rank's thread only, except for what says otherwise. Implementations: ucx/ between processes,
// loopback within one.

#include "transport/frame.hpp"
#include "transport/wire_fault.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::transport {

/// Names a peer within a cluster: a rank's number, or conductor_key.
using peer_key = std::uint32_t;

inline constexpr peer_key conductor_key = 0xffff'fffe;

/// "rank 3", "the conductor": for people.
inline std::string name_peer(peer_key peer) {
  return peer == conductor_key ? "the conductor" : "rank " + std::to_string(peer);
}

/// The secret of one epoch, made by the director and told over the control channel only.
using epoch_token = std::array<std::byte, 16>;

/// How to reach a peer; opaque bytes of the implementation, told over the control channel.
struct peer_address {
  std::vector<std::byte> bytes;
};

/// What the wires to one peer turned out to be, for people and for the choice of message sizes.
struct link_info {
  std::string transports; ///< For example "posix/memory cma/memory" or "tcp/eth0".
  bool shared_memory = false;
};

/// Counters of one transport; monotonic.
struct transport_counters {
  std::uint64_t frames_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t payload_copies = 0; ///< Copies of a payload made on our side (small eager
                                    ///< payloads that the wire does not let us keep).
  std::uint64_t tensor_copies = 0;  ///< Those of them whose payload is a tensor.
  std::uint64_t payload_bytes_copied = 0;
  std::uint64_t frames_dropped_stale = 0; ///< Frames of another epoch.
  std::uint64_t frames_refused = 0;       ///< Malformed, unauthorised or unknown peer.
};

class transport {
public:
  using frame_handler = std::function<void(peer_key from, frame&& received)>;
  using down_handler = std::function<void(peer_key peer, const error& why)>;

  virtual ~transport() = default;

  /// Handlers are called from within progress(), on the owner's thread, in the order in which the
  /// peer sent (pairwise FIFO also across payload sizes). They may call anything but close();
  /// progress() may be called again from within a handler and then delivers what follows.
  virtual void on_frame(frame_handler handler) = 0;

  /// Called once a link and cause: cancelled when the peer said goodbye (no fault), timed_out when
  /// its hello did not come in time, contract_violation when frames are missing or damaged,
  /// unreachable when the wire failed. Nothing is delivered from that peer afterwards; connect()
  /// again makes a new link.
  virtual void on_down(down_handler handler) = 0;

  virtual peer_address address() const = 0;

  /// Starts an epoch: from now on frames carry it, frames of other epochs are dropped and counted,
  /// and a peer is heard only after its hello proved `token`. Links of the old epoch end without a
  /// call of the down handler; what they had queued is dropped.
  virtual void start_epoch(epoch_id epoch, peer_key self, const epoch_token& token) = 0;

  /// Makes a link to a peer of the epoch and sends the hello. Links are mutual: both ends connect,
  /// in any order, also when one end starts the epoch later; frames posted before the peer
  /// answered wait for that. Connecting again to a linked peer replaces the link.
  virtual result<void> connect(peer_key peer, const peer_address& where) = 0;

  /// Whether the link is made: both ends have heard each other.
  virtual bool heard(peer_key peer) const = 0;

  /// Posts a frame; never blocks. header.sequence, source, destination, epoch and payload_bytes are
  /// filled in. The payload is shared until the wire is done with it and must not be written again.
  /// Fails with unreachable when the peer is down or not connected, overloaded when more than the
  /// configured bytes are queued for it.
  virtual result<void> send(peer_key peer, frame outgoing) = 0;

  /// For faults on purpose: the next frame for `peer` meets this once it is numbered. Ignored where
  /// there is no link.
  virtual void disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) = 0;

  /// Advances the wires; returns how much happened (0 = nothing).
  virtual std::size_t progress() = 0;

  /// Readable when there is work for progress(); valid between arm() == true and the next call.
  virtual int event_fd() const = 0;

  /// Prepares to sleep on event_fd(); false = there is work, call progress() again.
  virtual bool arm() = 0;

  /// Unreachable when there is no link.
  virtual result<link_info> link(peer_key peer) const = 0;

  /// Whether everything posted to every peer has left; a sender that was told `overloaded` may
  /// also simply try again after progress().
  virtual bool drained() const = 0;

  virtual const transport_counters& counters() const = 0;

  /// Says goodbye to every peer, waits until the wires took what was posted, and closes; bounded by
  /// the deadline. Returns timed_out when something was left.
  virtual result<void> close(std::chrono::milliseconds deadline) = 0;
};

} // namespace troupe::transport
