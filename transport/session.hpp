#pragma once
// Who is heard: the rules of epoch, token and order that every transport applies to what arrives.
// Knows no wire; owned by one transport and used on its thread.

#include "transport/transport.hpp"

#include <optional>
#include <string>
#include <unordered_map>

namespace troupe::transport {

/// A number that the sending end of a link draws at random for each link it makes and shows on each
/// frame, so that frames of an earlier link, or of somebody who never proved the token, are known.
using link_number = std::uint64_t;

enum class verdict : std::uint8_t {
  accept,
  renewed, ///< A hello: accepted, but its sender made a new link, so that ours to it is of no use.
  stale,   ///< Of another epoch or an earlier link: drop and count.
  refuse,  ///< Not authorised, not for us, or a repetition: drop and count.
  broken,  ///< From a peer that is heard, but frames before it are missing: the link is of no use.
};

/// A link is made when each end has heard the other's hello and knows that it was heard:
///
///   a                                  b
///   hello (link a1, answers 0)   ->        dropped, b has not started the epoch
///                                <-    hello (link b1, answers 0)
///   hello (link a1, answers b1)  ->
///                                <-    hello (link b1, answers a1)
///
/// Frames are sent from then on only, so none meets a peer that does not expect it.
class session {
public:
  /// Forgets every peer. `epoch` is the one whose frames are accepted.
  void start(epoch_id epoch, peer_key self, const epoch_token& token);

  epoch_id epoch() const noexcept { return epoch_; }

  peer_key self() const noexcept { return self_; }

  const epoch_token& token() const noexcept { return token_; }

  /// Begins our link to a peer and returns its number. An earlier one to it is given up.
  link_number open(peer_key peer);

  /// The header of the hello that is due now; its payload is the token.
  frame_header hello(peer_key peer);

  /// Whether the peer does not know yet that we heard it, and we have a link to tell it by.
  bool owes_hello(peer_key peer) const;

  /// Whether the link is made.
  bool linked(peer_key peer) const;

  /// Judges a hello that was sent under `link`.
  verdict greet(const frame_header& header, link_number link, std::span<const std::byte> payload);

  /// Judges any other frame without counting it.
  verdict judge(const frame_header& header, link_number link) const;

  /// Judges a frame that has a sequence number and, when it is accepted, expects the next one from
  /// then on.
  verdict admit(const frame_header& header, link_number link);

  /// The peer that shows this number on its frames; nothing when nobody does.
  std::optional<peer_key> sender_of(link_number link) const;

  /// The sequence number that the next frame of a peer carries.
  std::uint64_t expected(peer_key peer) const;

  /// Gives up our link to a peer, but still hears it: after `renewed`.
  void give_up(peer_key peer);

  /// Gives up our link to a peer and no longer hears it until its next hello.
  void forget(peer_key peer);

private:
  struct link_state {
    link_number ours = 0;   ///< 0 = none.
    link_number theirs = 0; ///< 0 = not heard.
    link_number told = 0;   ///< The number of theirs that our last hello answered.
    bool answered = false;  ///< Their hello answered ours.
    std::uint64_t last_sequence = 0;
  };

  /// `from` is what is known of the sender; null where that is nothing.
  verdict judge_by(const link_state* from, const frame_header& header, link_number link) const;

  epoch_id epoch_{};
  peer_key self_ = 0;
  epoch_token token_{};
  bool started_ = false;
  std::unordered_map<peer_key, link_state> peers_;
};

} // namespace troupe::transport
