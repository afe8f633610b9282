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

} // namespace

link_number draw_link_number() {
  link_number drawn = 0;
  while (drawn == 0)
    check(getrandom(&drawn, sizeof drawn, 0) == sizeof drawn, "the system gives 8 random bytes");
  return drawn;
}

void session::start(epoch_id epoch, peer_key self, const epoch_token& token) {
  epoch_ = epoch;
  self_ = self;
  token_ = token;
  started_ = true;
  incoming_.clear();
}

verdict
session::greet(const frame_header& header, link_number link, std::span<const std::byte> payload) {
  if (!started_ || header.epoch != epoch_)
    return verdict::stale;
  if (header.destination != self_ || header.source == self_ || link == 0)
    return verdict::refuse;
  if (!equal_in_constant_time(payload, token_))
    return verdict::refuse;
  auto& from = incoming_[header.source];
  if (from.link != link)
    from = {link, 0};
  return verdict::accept;
}

verdict session::judge(const frame_header& header, link_number link) const {
  if (!started_ || header.epoch != epoch_)
    return verdict::stale;
  if (header.destination != self_)
    return verdict::refuse;
  const auto from = incoming_.find(header.source);
  if (from == incoming_.end() || from->second.link != link)
    return verdict::refuse;
  return verdict::accept;
}

verdict session::admit(const frame_header& header, link_number link) {
  if (const auto found = judge(header, link); found != verdict::accept)
    return found;
  auto& from = incoming_.at(header.source);
  if (header.sequence <= from.last_sequence)
    return verdict::refuse;
  if (header.sequence != from.last_sequence + 1)
    return verdict::broken;
  from.last_sequence = header.sequence;
  return verdict::accept;
}

bool session::heard(peer_key peer) const {
  return incoming_.contains(peer);
}

std::uint64_t session::expected(peer_key peer) const {
  const auto from = incoming_.find(peer);
  return from == incoming_.end() ? 1 : from->second.last_sequence + 1;
}

void session::forget(peer_key peer) {
  incoming_.erase(peer);
}

} // namespace troupe::transport
