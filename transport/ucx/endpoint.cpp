#include "transport/ucx/endpoint.hpp"

#include "transport/ucx/error.hpp"

#include <fmt/core.h>

#include <cstring>

namespace troupe::transport::ucx {

namespace {

/// Cost that may be under way; see the head of endpoint.hpp.
constexpr std::uint64_t credit_window = std::uint64_t{8} << 20;
constexpr std::uint64_t credit_step = credit_window / 4;

/// What a frame costs beside its payload: the header and UCX's own descriptor.
constexpr std::uint64_t frame_cost = 512;

/// Payloads beyond this size are rendezvous on every wire, and wait at their sender.
constexpr std::uint64_t eager_at_most = std::uint64_t{512} << 10;

std::uint64_t cost_of(std::uint64_t payload_bytes) {
  return frame_cost + (payload_bytes <= eager_at_most ? payload_bytes : 0);
}

} // namespace

envelope read_envelope(std::span<const std::byte> header) {
  envelope found;
  std::memcpy(&found.link, header.data(), sizeof found.link);
  std::memcpy(&found.consumed, header.data() + sizeof found.link, sizeof found.consumed);
  return found;
}

endpoint::endpoint(worker& home,
                   session& rules,
                   const ucx_options& options,
                   transport_counters& counters,
                   peer_key peer,
                   wire& to)
  : home_(home), rules_(rules), options_(options), counters_(counters), peer_(peer), to_(to),
    link_(rules.open(peer)) {
  ++to_.links;
}

endpoint::~endpoint() {
  abandon_slots();
  --to_.links;
}

void endpoint::abandon_slots() {
  for (auto& waiting : slots_)
    if (waiting.pending)
      home_.drop(*waiting.pending);
  slots_.clear();
}

frame_header
endpoint::complete(frame_header header, std::uint64_t payload_bytes, std::uint64_t sequence) {
  header.version = wire_version;
  header.epoch = rules_.epoch();
  header.sequence = sequence;
  header.payload_bytes = payload_bytes;
  header.source = rules_.self();
  header.destination = peer_;
  return header;
}

void endpoint::post(const frame_header& header, compute::buffer payload) {
  wire_header bytes;
  std::memcpy(bytes.data(), &link_, sizeof link_);
  std::memcpy(bytes.data() + sizeof link_, &consumed_cost_, sizeof consumed_cost_);
  encode(header, std::span(bytes).subspan<envelope_bytes>());
  told_cost_ = consumed_cost_;
  counters_.header_bytes_sent += bytes.size();
  home_.post(to_, bytes, std::move(payload));
}

void endpoint::say_hello() {
  auto token = std::make_shared<epoch_token>(rules_.token());
  post(rules_.hello(peer_), compute::buffer::adopt(token->data(), token->size(), token));
}

void endpoint::say_goodbye() {
  if (said_goodbye_)
    return;
  said_goodbye_ = true;
  frame last;
  last.header.kind = static_cast<std::uint8_t>(frame_kind::goodbye);
  last.header = complete(last.header, 0, ++sequence_);
  waiting_.push_back(std::move(last));
  flush();
}

result<void> endpoint::send(frame outgoing) {
  if (said_goodbye_ || failure())
    return error{errc::unreachable, name_peer(peer_) + " is down"};
  const auto bytes = outgoing.payload.size();
  if (bytes > options_.max_payload_bytes)
    return error{errc::invalid_argument,
                 fmt::format("frame of {} bytes for peer {}, at most {} are sent",
                             bytes,
                             peer_,
                             options_.max_payload_bytes)};
  const auto queued = waiting_bytes_ + to_.posted_bytes;
  if (queued != 0 && queued + bytes > options_.queued_bytes_limit)
    return error{
      errc::overloaded,
      fmt::format(
        "{} bytes wait for peer {}, the limit is {}", queued, peer_, options_.queued_bytes_limit)};
  outgoing.header = complete(outgoing.header, bytes, ++sequence_);
  if (options_.digest)
    outgoing.header.digest = seal(outgoing.header, {outgoing.payload.data(), bytes});
  ++counters_.frames_sent;
  counters_.payload_bytes_sent += bytes;
  if (waiting_.empty() && disturbance_.idle() && may_leave(outgoing)) {
    leave(std::move(outgoing));
    return {};
  }
  if (disturbance_.idle())
    queue(std::move(outgoing));
  else
    for (auto& disturbed : disturbance_.pass(std::move(outgoing)))
      queue(std::move(disturbed));
  flush();
  return {};
}

bool endpoint::may_leave(const frame& next) const {
  return rules_.linked(peer_) && to_.status == UCS_OK
         && sent_cost_ + cost_of(next.payload.size()) - acknowledged_cost_ <= credit_window;
}

void endpoint::leave(frame next) {
  sent_cost_ += cost_of(next.payload.size());
  post(next.header, std::move(next.payload));
}

void endpoint::queue(frame leaving) {
  waiting_bytes_ += leaving.payload.size();
  waiting_.push_back(std::move(leaving));
}

void endpoint::flush() {
  while (!waiting_.empty() && may_leave(waiting_.front())) {
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= first.payload.size();
    leave(std::move(first));
  }
}

void endpoint::credit(std::uint64_t consumed) {
  if (consumed > acknowledged_cost_ && consumed <= sent_cost_)
    acknowledged_cost_ = consumed;
}

bool endpoint::put(const frame_header& header, const arrival& from) {
  if (failure_)
    return false;
  auto& added = slots_.emplace_back();
  added.content.header = header;
  if (from.rendezvous) {
    added.pending = std::make_shared<rendezvous>();
    added.pending->descriptor = from.data;
    return true;
  }
  added.ready = true;
  if (from.bytes == 0)
    return false;
  bool kept = false;
  bool copied = false;
  auto payload = home_.take(from, kept, copied);
  if (!payload) {
    slots_.pop_back();
    fail(with_context(fmt::format("receiving from peer {}", peer_), payload.error()));
    return false;
  }
  added.content.payload = std::move(*payload);
  if (copied) {
    ++counters_.payload_copies;
    counters_.tensor_copies += header.rows > 0 ? 1 : 0;
    counters_.payload_bytes_copied += from.bytes;
  }
  return kept;
}

void endpoint::settle(slot& first) {
  if (first.ready || !first.pending)
    return;
  if (first.pending->now == rendezvous::state::failed) {
    fail(to_error(first.pending->status, fmt::format("receive from peer {}", peer_)));
    abandon_slots();
    return;
  }
  if (first.pending->now != rendezvous::state::ready)
    return;
  first.content.payload = std::move(first.pending->payload);
  first.pending.reset();
  first.ready = true;
  moving_bytes_ -= first.content.payload.size();
}

std::optional<frame> endpoint::next() {
  if (slots_.empty())
    return std::nullopt;
  settle(slots_.front());
  if (slots_.empty() || !slots_.front().ready)
    return std::nullopt;
  auto received = std::move(slots_.front().content);
  slots_.pop_front();
  consumed_cost_ += cost_of(received.payload.size());
  if (!intact(received))
    return std::nullopt;
  return received;
}

bool endpoint::intact(const frame& received) {
  const auto expected = received.header.digest;
  if (expected == 0)
    return true;
  const auto found = seal(received.header, {received.payload.data(), received.payload.size()});
  if (found == expected)
    return true;
  ++counters_.frames_refused;
  fail({errc::contract_violation,
        fmt::format("frame {} of peer {} is damaged: digest {:016x}, its sender computed {:016x}",
                    received.header.sequence,
                    peer_,
                    found,
                    expected)});
  abandon_slots();
  return false;
}

void endpoint::pull() {
  for (auto& waiting : slots_) {
    if (!waiting.pending || waiting.pending->now != rendezvous::state::held)
      continue;
    const auto bytes = waiting.content.header.payload_bytes;
    if (moving_bytes_ != 0 && moving_bytes_ + bytes > options_.receive_window)
      return;
    if (auto pulled = home_.pull(waiting.pending, bytes); !pulled) {
      fail(with_context(fmt::format("receiving from peer {}", peer_), pulled.error()));
      return;
    }
    moving_bytes_ += bytes;
  }
}

void endpoint::tell_consumed() {
  if (consumed_cost_ - told_cost_ < credit_step)
    return;
  frame_header header;
  header.kind = static_cast<std::uint8_t>(frame_kind::credit);
  post(complete(header, 0, 0), {});
}

void endpoint::advance() {
  if (failure())
    return;
  if (rules_.owes_hello(peer_))
    say_hello();
  pull();
  tell_consumed();
  flush();
}

void endpoint::fail(error why) {
  if (!failure_)
    failure_ = std::move(why);
}

std::optional<error> endpoint::failure() const {
  if (failure_)
    return failure_;
  if (to_.status == UCS_OK)
    return std::nullopt;
  return error{errc::unreachable,
               fmt::format("{}: {}", name_peer(peer_), ucs_status_string(to_.status))};
}

} // namespace troupe::transport::ucx
