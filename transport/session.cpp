#include "transport/session.hpp"

#include <sys/random.h>

namespace troupe::transport {

namespace {

/// Takes the same time wherever the first difference lies, so that a guesser learns nothing.
bool equal_in_constant_time(std::span<const std::byte> found, const epoch_token& token) {
  if (found.size() != token.size())
    return false;
  auto difference = std::byte{0};
  for (std::size_t i = 0; i < token.size(); ++i)
    difference |= found[i] ^ token[i];
  return difference == std::byte{0};
}

/// From the operating system's random source; never 0.
link_number draw_link_number() {
  link_number drawn = 0;
  while (drawn == 0)
    check(getrandom(&drawn, sizeof drawn, 0) == sizeof drawn, "the system gives 8 random bytes");
  return drawn;
}

} // namespace

void session::start(epoch_id epoch, peer_key self, const epoch_token& token) {
  epoch_ = epoch;
  self_ = self;
  token_ = token;
  started_ = true;
  peers_.clear();
}

link_number session::open(peer_key peer) {
  auto& link = peers_[peer];
  if (link.ours != 0) // So that the peer's answer to the old link is not taken for one to the new.
    link = {};
  link.ours = draw_link_number();
  return link.ours;
}

frame_header session::hello(peer_key peer) {
  auto& link = peers_.at(peer);
  link.told = link.theirs;
  frame_header header;
  header.kind = static_cast<std::uint8_t>(frame_kind::hello);
  header.epoch = epoch_;
  header.tag = link.theirs;
  header.source = self_;
  header.destination = peer;
  header.payload_bytes = token_.size();
  return header;
}

bool session::owes_hello(peer_key peer) const {
  const auto link = peers_.find(peer);
  return link != peers_.end() && link->second.ours != 0 && link->second.told != link->second.theirs;
}

bool session::linked(peer_key peer) const {
  const auto link = peers_.find(peer);
  return link != peers_.end() && link->second.theirs != 0 && link->second.answered;
}

verdict
session::greet(const frame_header& header, link_number link, std::span<const std::byte> payload) {
  if (!started_ || header.epoch != epoch_)
    return verdict::stale;
  if (header.destination != self_ || header.source == self_ || link == 0)
    return verdict::refuse;
  if (!equal_in_constant_time(payload, token_))
    return verdict::refuse;
  auto& known = peers_[header.source];
  const bool answers = header.tag != 0 && header.tag == known.ours;
  if (known.ours != 0 && header.tag != 0 && !answers)
    return verdict::stale; // It answers a link that we gave up; its sender will hear of the new
                           // one.
  const bool replaces = known.theirs != 0 && known.theirs != link;
  if (known.theirs != link) {
    known.theirs = link;
    known.last_sequence = 0;
  }
  // What we sent under our link went to the one that its sender gave up.
  if (replaces && known.answered)
    return verdict::renewed;
  known.answered = known.answered || answers;
  return verdict::accept;
}

verdict
session::judge_by(const link_state* from, const frame_header& header, link_number link) const {
  if (!started_ || header.epoch != epoch_)
    return verdict::stale;
  if (header.destination != self_)
    return verdict::refuse;
  return from != nullptr && from->theirs == link && link != 0 ? verdict::accept : verdict::refuse;
}

verdict session::judge(const frame_header& header, link_number link) const {
  const auto from = peers_.find(header.source);
  return judge_by(from == peers_.end() ? nullptr : &from->second, header, link);
}

verdict session::admit(const frame_header& header, link_number link) {
  const auto found = peers_.find(header.source);
  auto* from = found == peers_.end() ? nullptr : &found->second;
  if (const auto judged = judge_by(from, header, link); judged != verdict::accept)
    return judged;
  if (header.sequence <= from->last_sequence)
    return verdict::refuse;
  if (header.sequence != from->last_sequence + 1)
    return verdict::broken;
  from->last_sequence = header.sequence;
  return verdict::accept;
}

std::optional<peer_key> session::sender_of(link_number link) const {
  for (const auto& [peer, state] : peers_)
    if (link != 0 && state.theirs == link)
      return peer;
  return std::nullopt;
}

std::uint64_t session::expected(peer_key peer) const {
  const auto from = peers_.find(peer);
  return from == peers_.end() ? 1 : from->second.last_sequence + 1;
}

void session::give_up(peer_key peer) {
  if (const auto link = peers_.find(peer); link != peers_.end()) {
    link->second.ours = 0;
    link->second.told = 0;
    link->second.answered = false;
  }
}

void session::forget(peer_key peer) {
  peers_.erase(peer);
}

} // namespace troupe::transport
