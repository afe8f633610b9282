#include "transport/ucx/ucx_transport.hpp"

#include "transport/ucx/endpoint.hpp"

#include <fmt/core.h>

#include <map>
#include <thread>

namespace troupe::transport {

namespace {

using clock = std::chrono::steady_clock;
using ucx::arrival;
using ucx::endpoint;

class ucx_transport final : public transport {
public:
  ucx_transport(std::shared_ptr<ucx::worker> worker,
                peer_address address,
                const ucx_options& options)
    : options_(options), worker_(std::move(worker)), address_(std::move(address)) {
    worker_->on_arrival([this](const arrival& found) { return arrived(found); });
  }

  ~ucx_transport() override { worker_->on_arrival(nullptr); }

  void on_frame(frame_handler handler) override { frame_handler_ = std::move(handler); }

  void on_down(down_handler handler) override { down_handler_ = std::move(handler); }

  peer_address address() const override { return address_; }

  void start_epoch(epoch_id epoch, peer_key self, const epoch_token& token) override;
  result<void> connect(peer_key peer, const peer_address& where) override;
  result<void> send(peer_key peer, frame outgoing) override;
  void disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) override;
  std::size_t progress() override;
  bool arm() override;
  result<link_info> link(peer_key peer) const override;
  bool drained() const override;
  result<void> close(std::chrono::milliseconds deadline) override;

  bool heard(peer_key peer) const override { return session_.linked(peer); }

  int event_fd() const override { return worker_->event_fd(); }

  const transport_counters& counters() const override { return counters_; }

private:
  struct peer_link {
    std::unique_ptr<endpoint> end;
    clock::time_point hello_due;
    bool renewed =
      false;           ///< Failed because its peer made a new link, whose hello is already heard.
    bool left = false; ///< While closing: the peer said goodbye too, or failed.
  };

  bool arrived(const arrival& found);
  void greeted(const frame_header& header, link_number link, const arrival& found);
  bool refuse();
  bool refuse_malformed(link_number link, const error& why);
  std::size_t deliver();
  void hand_over(peer_key peer, frame&& received);
  std::size_t find_failures();
  std::size_t find_silent_peers();
  void down(peer_key peer, const error& why);
  template <class Condition>
  bool progress_until(Condition reached, clock::time_point give_up);

  const ucx_options options_;
  std::shared_ptr<ucx::worker> worker_;
  const peer_address address_;
  session session_;
  std::map<peer_key, peer_link> links_;
  std::uint64_t generation_ = 0; ///< Counts changes of links_, which handlers may make.
  frame_handler frame_handler_;
  down_handler down_handler_;
  transport_counters counters_;
  bool waits_for_hello_ = false; ///< A link may not be made yet.
  bool closing_ = false;
};

void ucx_transport::start_epoch(epoch_id epoch, peer_key self, const epoch_token& token) {
  // Wires outlive an epoch, so that peers that stay need not connect anew; those that found no use
  // in the epoch that ends are closed.
  worker_->shut_idle();
  links_.clear();
  ++generation_;
  session_.start(epoch, self, token);
}

result<void> ucx_transport::connect(peer_key peer, const peer_address& where) {
  if (closing_)
    return error{errc::unreachable, "this transport is closed"};
  if (peer == session_.self() || where.bytes == address_.bytes)
    return error{errc::invalid_argument, fmt::format("peer {} connects to itself", peer)};
  if (links_.contains(peer)) {
    links_.erase(peer);
    ++generation_;
  }
  auto wire = worker_->open(where.bytes);
  if (!wire)
    return with_context(fmt::format("connecting to peer {}", peer), wire.error());
  auto& made = links_[peer];
  ++generation_;
  made.end = std::make_unique<endpoint>(*worker_, session_, options_, counters_, peer, **wire);
  made.hello_due = clock::now() + options_.connect_deadline;
  waits_for_hello_ = true;
  made.end->say_hello();
  return {};
}

result<void> ucx_transport::send(peer_key peer, frame outgoing) {
  const auto to = links_.find(peer);
  if (to == links_.end())
    return error{errc::unreachable, fmt::format("no link to peer {}", peer)};
  return to->second.end->send(std::move(outgoing));
}

void ucx_transport::disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) {
  if (const auto to = links_.find(peer); to != links_.end())
    to->second.end->disturb_next(how, seed);
}

// -- what UCX hands to us, within ucx::worker::progress() ----------------------------------------

bool ucx_transport::refuse() {
  ++counters_.frames_refused;
  return false;
}

/// Only a peer knows its link's number: what it sends damaged has a reason that somebody waits for.
bool ucx_transport::refuse_malformed(link_number link, const error& why) {
  const auto peer = session_.sender_of(link);
  const auto from = peer ? links_.find(*peer) : links_.end();
  if (from != links_.end())
    from->second.end->fail(with_context("a frame of " + name_peer(*peer), why));
  return refuse();
}

bool ucx_transport::arrived(const arrival& found) {
  if (found.header.size() != wire_header_bytes)
    return refuse();
  const auto around = ucx::read_envelope(found.header);
  const auto header = decode(found.header.subspan(ucx::envelope_bytes), found.bytes);
  if (!header)
    return refuse_malformed(around.link, header.error());
  if (found.bytes > options_.max_payload_bytes)
    return refuse_malformed(around.link,
                            {errc::contract_violation,
                             fmt::format("a frame of {} bytes, at most {} are taken",
                                         found.bytes,
                                         options_.max_payload_bytes)});
  if (header->kind == static_cast<std::uint8_t>(frame_kind::hello)) {
    greeted(*header, around.link, found);
    return false;
  }
  const bool is_credit = header->kind == static_cast<std::uint8_t>(frame_kind::credit);
  const auto judged =
    is_credit ? session_.judge(*header, around.link) : session_.admit(*header, around.link);
  const auto from = links_.find(header->source);
  if (judged == verdict::stale) {
    ++counters_.frames_dropped_stale;
    return false;
  }
  if (judged == verdict::refuse || from == links_.end())
    return refuse();
  auto& end = *from->second.end;
  end.credit(around.consumed);
  if (judged == verdict::broken)
    end.fail({errc::contract_violation,
              fmt::format("frame {} of peer {} came where {} was expected",
                          header->sequence,
                          header->source,
                          session_.expected(header->source))});
  return judged == verdict::accept && !is_credit && end.put(*header, found);
}

void ucx_transport::greeted(const frame_header& header, link_number link, const arrival& found) {
  if (found.rendezvous) {
    refuse();
    return;
  }
  const auto judged = session_.greet(header, link, {found.data, found.bytes});
  if (judged == verdict::stale)
    ++counters_.frames_dropped_stale;
  if (judged == verdict::refuse)
    refuse();
  const auto to = links_.find(header.source);
  if (to == links_.end())
    return;
  if (judged == verdict::renewed) {
    to->second.renewed = true;
    to->second.end->fail(
      {errc::unreachable, fmt::format("peer {} made a new link", header.source)});
  }
}

// -- what the owner sees, within progress() ------------------------------------------------------

std::size_t ucx_transport::progress() {
  std::size_t count = worker_->progress();
  if (std::exchange(worker_->happened, false)) {
    count += deliver();
    count += find_failures();
  }
  return count + find_silent_peers();
}

std::size_t ucx_transport::deliver() {
  std::size_t delivered = 0;
  for (bool again = true; again;) {
    again = false;
    for (auto& [peer, from] : links_) {
      from.end->advance();
      const auto before = generation_;
      while (auto received = from.end->next()) {
        ++delivered;
        hand_over(peer, std::move(*received));
        again = true;
        if (generation_ != before)
          break;
      }
      if (generation_ != before)
        break; // A handler changed the links: start over.
    }
  }
  return delivered;
}

void ucx_transport::hand_over(peer_key peer, frame&& received) {
  if (received.header.kind == static_cast<std::uint8_t>(frame_kind::goodbye)) {
    auto& from = links_.at(peer);
    from.end->say_goodbye();
    if (closing_) {
      from.left = true;
      return;
    }
    down(peer, {errc::cancelled, name_peer(peer) + " said goodbye"});
    worker_->shut_idle();
    return;
  }
  if (closing_)
    return;
  ++counters_.frames_received;
  counters_.payload_bytes_received += received.payload.size();
  if (frame_handler_)
    frame_handler_(peer, std::move(received));
}

std::size_t ucx_transport::find_failures() {
  std::vector<std::pair<peer_key, error>> found;
  for (auto& [peer, to] : links_) {
    auto failure = to.end->failure();
    if (failure && closing_)
      to.left = true;
    else if (failure)
      found.emplace_back(peer, *failure);
  }
  for (const auto& [peer, why] : found)
    down(peer, why);
  return found.size();
}

std::size_t ucx_transport::find_silent_peers() {
  if (!waits_for_hello_)
    return 0;
  waits_for_hello_ = false;
  std::vector<peer_key> found;
  for (const auto& [peer, to] : links_) {
    if (session_.linked(peer))
      continue;
    waits_for_hello_ = true;
    if (clock::now() > to.hello_due)
      found.push_back(peer);
  }
  for (const auto peer : found)
    down(peer,
         {errc::timed_out,
          fmt::format("{} did not say hello within {} ms",
                      name_peer(peer),
                      options_.connect_deadline.count())});
  return found.size();
}

void ucx_transport::down(peer_key peer, const error& why) {
  const auto gone = links_.find(peer);
  if (gone == links_.end())
    return;
  if (gone->second.renewed)
    session_.give_up(peer);
  else
    session_.forget(peer);
  links_.erase(gone);
  ++generation_;
  if (down_handler_ && !closing_)
    down_handler_(peer, why);
}

bool ucx_transport::arm() {
  return !worker_->happened && worker_->arm();
}

result<link_info> ucx_transport::link(peer_key peer) const {
  const auto to = links_.find(peer);
  if (to == links_.end())
    return error{errc::unreachable, fmt::format("no link to peer {}", peer)};
  return to->second.end->to().info;
}

bool ucx_transport::drained() const {
  for (const auto& [peer, to] : links_)
    if (!to.end->drained())
      return false;
  return true;
}

// -- the end -------------------------------------------------------------------------------------

template <class Condition>
bool ucx_transport::progress_until(Condition reached, clock::time_point give_up) {
  while (!reached()) {
    if (clock::now() > give_up)
      return false;
    if (progress() == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

result<void> ucx_transport::close(std::chrono::milliseconds deadline) {
  closing_ = true;
  const auto give_up = clock::now() + deadline;
  // A peer that computes answers late; what we posted has reached it all the same.
  const auto courtesy = std::min(give_up, clock::now() + std::chrono::seconds(1));
  std::erase_if(links_, [this](const auto& entry) { return !session_.linked(entry.first); });
  ++generation_;
  for (auto& [peer, to] : links_)
    to.end->say_goodbye();
  const auto every = [this](auto holds) {
    for (const auto& [peer, to] : links_)
      if (!to.left && !holds(to))
        return false;
    return true;
  };
  const bool sent = progress_until(
    [&] { return every([](const peer_link& to) { return to.end->drained(); }); }, give_up);
  if (sent)
    progress_until([&] { return every([](const peer_link&) { return false; }); }, courtesy);
  links_.clear();
  ++generation_;
  worker_->shut_idle();
  const bool shut = progress_until([this] { return worker_->all_shut(); }, give_up);
  if (sent && shut)
    return {};
  return error{errc::timed_out,
               fmt::format("frames for some peers had not left after {} ms", deadline.count())};
}

} // namespace

result<std::unique_ptr<transport>> make_ucx_transport(const ucx_options& options) {
  auto worker = ucx::worker::make(options);
  if (!worker)
    return worker.error();
  auto address = (*worker)->address();
  if (!address)
    return address.error();
  return std::unique_ptr<transport>(std::make_unique<ucx_transport>(
    std::move(*worker), peer_address{std::move(*address)}, options));
}

} // namespace troupe::transport
