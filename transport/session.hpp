#pragma once
// Who is heard: the rules of epoch, token and order that every transport applies to what arrives.
// Knows no wire; owned by one transport and used on its thread.

#include "transport/transport.hpp"

#include <string>
#include <unordered_map>

namespace troupe::transport {

/// A number that the sending end of a link draws at random for each link it makes and shows on each
/// frame, so that frames of an earlier link, or of somebody who never proved the token, are known.
using link_number = std::uint64_t;

/// A fresh link number from the operating system's random source; never 0.
link_number draw_link_number();

enum class verdict : std::uint8_t {
  accept,
  stale,  ///< Another epoch, or an earlier link of the same peer: drop and count.
  refuse, ///< Not authorised, not for us, or a repetition: drop and count.
  broken, ///< From a peer that is heard, but frames before it are missing: the link is of no use.
};

class session {
public:
  /// Forgets every peer. `epoch` is the one whose frames are accepted.
  void start(epoch_id epoch, peer_key self, const epoch_token& token);

  epoch_id epoch() const noexcept { return epoch_; }

  peer_key self() const noexcept { return self_; }

  const epoch_token& token() const noexcept { return token_; }

  /// Judges a hello; on accept its source is heard under `link` from now on, starting at
  /// sequence 1. A second hello of the same link changes nothing; one of a new link replaces the
  /// old.
  verdict greet(const frame_header& header, link_number link, std::span<const std::byte> payload);

  /// Judges any other frame without counting it.
  verdict judge(const frame_header& header, link_number link) const;

  /// Judges a frame and, when it is accepted, expects the next sequence number from then on.
  verdict admit(const frame_header& header, link_number link);

  bool heard(peer_key peer) const;

  /// The sequence number that the next frame of a heard peer carries.
  std::uint64_t expected(peer_key peer) const;

  /// No longer hears the peer until its next hello.
  void forget(peer_key peer);

private:
  struct incoming {
    link_number link = 0;
    std::uint64_t last_sequence = 0;
  };

  epoch_id epoch_{};
  peer_key self_ = 0;
  epoch_token token_{};
  bool started_ = false;
  std::unordered_map<peer_key, incoming> incoming_;
};

} // namespace troupe::transport
