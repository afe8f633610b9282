#include "transport/loopback.hpp"

#include "transport/session.hpp"

#include <fmt/core.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace troupe::transport {

namespace {

constexpr std::uint64_t hello_heard_you =
  1; ///< Flag of a hello: the sender has heard the receiver.

/// Bytes of one link that its receiver has not taken yet; shared by both ends.
using backlog = std::shared_ptr<std::atomic<std::size_t>>;

struct packet {
  frame content;
  link_number link = 0;
  backlog waiting;
};

/// Where packets for one end arrive; the only thing that several threads touch.
class inbox {
public:
  explicit inbox(int event) : event_(event) {}

  ~inbox() { ::close(event_); }

  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  int event() const noexcept { return event_; }

  /// False when the end is closed.
  bool put(packet&& arriving) {
    bool wake = false;
    {
      const std::lock_guard guard(lock_);
      if (closed_)
        return false;
      packets_.push_back(std::move(arriving));
      wake = std::exchange(sleeping_, false);
    }
    if (wake)
      ring();
    return true;
  }

  std::deque<packet> take() {
    const std::lock_guard guard(lock_);
    sleeping_ = false;
    return std::exchange(packets_, {});
  }

  bool arm() {
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto ignored = ::read(event_, &rung, sizeof rung);
    const std::lock_guard guard(lock_);
    sleeping_ = packets_.empty();
    return sleeping_;
  }

  void close() {
    const std::lock_guard guard(lock_);
    closed_ = true;
    packets_.clear();
  }

private:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(event_, &one, sizeof one);
  }

  const int event_;
  std::mutex lock_;
  std::deque<packet> packets_;
  bool closed_ = false;
  bool sleeping_ = false;
};

using clock = std::chrono::steady_clock;

bool intact(const frame& received) {
  const auto& header = received.header;
  const std::span<const std::byte> payload{received.payload.data(), received.payload.size()};
  return header.payload_bytes == payload.size()
         && (header.digest == 0 || header.digest == seal(header, payload));
}

/// This end's view of one peer.
struct loopback_link {
  std::shared_ptr<inbox> there;
  link_number number = 0;
  std::uint64_t sequence = 0;
  backlog waiting = std::make_shared<std::atomic<std::size_t>>(0);
  std::deque<packet> unheard; ///< Posted before the peer's hello.
  wire_disturbance disturbance;
  clock::time_point hello_due;
};

} // namespace

struct loopback_registry {
  std::mutex lock;
  std::uint64_t next_port = 1;
  std::map<std::uint64_t, std::weak_ptr<inbox>> ends;

  std::shared_ptr<inbox> find(const peer_address& where) {
    std::uint64_t port = 0;
    if (where.bytes.size() != sizeof port)
      return nullptr;
    std::memcpy(&port, where.bytes.data(), sizeof port);
    const std::lock_guard guard(lock);
    const auto found = ends.find(port);
    return found == ends.end() ? nullptr : found->second.lock();
  }
};

namespace {

class loopback_end final : public transport {
public:
  loopback_end(std::shared_ptr<loopback_registry> registry,
               std::shared_ptr<inbox> here,
               std::uint64_t port,
               const loopback_options& options)
    : registry_(std::move(registry)), here_(std::move(here)), port_(port), options_(options) {}

  ~loopback_end() override { here_->close(); }

  void on_frame(frame_handler handler) override { frame_handler_ = std::move(handler); }

  void on_down(down_handler handler) override { down_handler_ = std::move(handler); }

  peer_address address() const override {
    peer_address mine;
    mine.bytes.resize(sizeof port_);
    std::memcpy(mine.bytes.data(), &port_, sizeof port_);
    return mine;
  }

  void start_epoch(epoch_id epoch, peer_key self, const epoch_token& token) override {
    session_.start(epoch, self, token);
    links_.clear();
  }

  result<void> connect(peer_key peer, const peer_address& where) override;
  result<void> send(peer_key peer, frame outgoing) override;
  void disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) override;
  std::size_t progress() override;
  result<void> close(std::chrono::milliseconds deadline) override;

  bool heard(peer_key peer) const override { return session_.linked(peer); }

  int event_fd() const override { return here_->event(); }

  bool arm() override { return taken_.empty() && here_->arm(); }

  result<link_info> link(peer_key peer) const override {
    if (!links_.contains(peer))
      return error{errc::unreachable, fmt::format("no link to peer {}", peer)};
    return link_info{"loopback", true};
  }

  bool drained() const override { return true; }

  const transport_counters& counters() const override { return counters_; }

private:
  packet wrap(loopback_link& to, peer_key peer, frame outgoing, std::uint64_t sequence);
  void say_hello(peer_key peer, loopback_link& to);
  void put_on_wire(peer_key peer, loopback_link& to, packet&& leaving);
  bool deliver(packet&& arrived);
  bool greet(packet&& arrived);
  void push(peer_key peer, packet&& leaving);
  void down(peer_key peer, const error& why);
  void drop_link(peer_key peer, const error& why);
  std::size_t find_silent_peers();

  std::shared_ptr<loopback_registry> registry_;
  std::shared_ptr<inbox> here_;
  const std::uint64_t port_;
  const loopback_options options_;
  session session_;
  std::map<peer_key, loopback_link> links_;
  std::deque<packet> taken_;
  frame_handler frame_handler_;
  down_handler down_handler_;
  transport_counters counters_;
};

packet
loopback_end::wrap(loopback_link& to, peer_key peer, frame outgoing, std::uint64_t sequence) {
  outgoing.header.epoch = session_.epoch();
  outgoing.header.sequence = sequence;
  outgoing.header.source = session_.self();
  outgoing.header.destination = peer;
  outgoing.header.payload_bytes = outgoing.payload.size();
  if (options_.digest)
    outgoing.header.digest =
      seal(outgoing.header, {outgoing.payload.data(), outgoing.payload.size()});
  return {std::move(outgoing), to.number, to.waiting};
}

void loopback_end::say_hello(peer_key peer, loopback_link& to) {
  auto token = std::make_shared<epoch_token>(session_.token());
  frame hello{session_.hello(peer), compute::buffer::adopt(token->data(), token->size(), token)};
  to.waiting->fetch_add(hello.payload.size());
  push(peer, {std::move(hello), to.number, to.waiting});
}

result<void> loopback_end::connect(peer_key peer, const peer_address& where) {
  if (peer == session_.self())
    return error{errc::invalid_argument, fmt::format("peer {} connects to itself", peer)};
  auto there = registry_->find(where);
  if (!there)
    return error{errc::unreachable,
                 fmt::format("no end of this process at the address of {}", peer)};
  auto& to = links_[peer] = loopback_link{};
  to.there = std::move(there);
  to.number = session_.open(peer);
  to.hello_due = clock::now() + options_.connect_deadline;
  say_hello(peer, to);
  return {};
}

result<void> loopback_end::send(peer_key peer, frame outgoing) {
  const auto to = links_.find(peer);
  if (to == links_.end())
    return error{errc::unreachable, fmt::format("no link to peer {}", peer)};
  const auto bytes = outgoing.payload.size();
  const auto waiting = to->second.waiting->load();
  if (waiting != 0 && waiting + bytes > options_.queued_bytes_limit)
    return error{
      errc::overloaded,
      fmt::format(
        "{} bytes wait for peer {}, the limit is {}", waiting, peer, options_.queued_bytes_limit)};
  ++counters_.frames_sent;
  counters_.payload_bytes_sent += bytes;
  auto leaving = wrap(to->second, peer, std::move(outgoing), ++to->second.sequence);
  if (to->second.disturbance.idle()) {
    put_on_wire(peer, to->second, std::move(leaving));
    return {};
  }
  for (auto& disturbed : to->second.disturbance.pass(std::move(leaving.content)))
    put_on_wire(peer, to->second, {std::move(disturbed), leaving.link, leaving.waiting});
  return {};
}

void loopback_end::put_on_wire(peer_key peer, loopback_link& to, packet&& leaving) {
  to.waiting->fetch_add(leaving.content.payload.size());
  if (session_.linked(peer))
    push(peer, std::move(leaving));
  else
    to.unheard.push_back(std::move(leaving));
}

void loopback_end::disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) {
  if (const auto to = links_.find(peer); to != links_.end())
    to->second.disturbance.set(how, seed);
}

void loopback_end::push(peer_key peer, packet&& leaving) {
  // A closed end is found out by progress(), which may call the down handler; send() may not.
  if (auto& to = links_.at(peer); to.there && !to.there->put(std::move(leaving)))
    to.there.reset();
}

std::size_t loopback_end::progress() {
  if (taken_.empty())
    taken_ = here_->take();
  std::size_t happened = 0;
  while (!taken_.empty()) {
    auto next = std::move(taken_.front());
    taken_.pop_front();
    happened += deliver(std::move(next)) ? 1 : 0;
  }
  return happened + find_silent_peers();
}

bool loopback_end::greet(packet&& arrived) {
  const auto peer = arrived.content.header.source;
  const auto& token = arrived.content.payload;
  const auto found =
    session_.greet(arrived.content.header, arrived.link, {token.data(), token.size()});
  if (found == verdict::stale)
    ++counters_.frames_dropped_stale;
  if (found == verdict::refuse)
    ++counters_.frames_refused;
  if (found != verdict::accept && found != verdict::renewed)
    return false;
  const auto to = links_.find(peer);
  if (to == links_.end())
    return true;
  if (found == verdict::renewed) {
    session_.give_up(peer);
    drop_link(peer, {errc::unreachable, fmt::format("peer {} made a new link", peer)});
    return true;
  }
  if (session_.owes_hello(peer))
    say_hello(peer, to->second);
  if (session_.linked(peer))
    for (auto& leaving : std::exchange(to->second.unheard, {}))
      push(peer, std::move(leaving));
  return true;
}

bool loopback_end::deliver(packet&& arrived) {
  const auto& header = arrived.content.header;
  arrived.waiting->fetch_sub(arrived.content.payload.size());
  if (header.kind == static_cast<std::uint8_t>(frame_kind::hello))
    return greet(std::move(arrived));
  const auto peer = header.source;
  switch (session_.admit(header, arrived.link)) {
  case verdict::accept: break;
  case verdict::stale: ++counters_.frames_dropped_stale; return false;
  case verdict::renewed:
  case verdict::refuse: ++counters_.frames_refused; return false;
  case verdict::broken:
    down(peer, {errc::contract_violation, fmt::format("frames of peer {} are missing", peer)});
    return true;
  }
  if (!links_.contains(peer))
    return false;
  if (!intact(arrived.content)) {
    ++counters_.frames_refused;
    down(peer,
         {errc::contract_violation,
          fmt::format("frame {} of {} is damaged: its length or digest is not what it says",
                      header.sequence,
                      name_peer(peer))});
    return true;
  }
  if (header.kind == static_cast<std::uint8_t>(frame_kind::goodbye)) {
    down(peer, {errc::cancelled, name_peer(peer) + " said goodbye"});
    return true;
  }
  ++counters_.frames_received;
  counters_.payload_bytes_received += arrived.content.payload.size();
  if (frame_handler_)
    frame_handler_(peer, std::move(arrived.content));
  return true;
}

std::size_t loopback_end::find_silent_peers() {
  std::vector<std::pair<peer_key, error>> found;
  for (const auto& [peer, to] : links_) {
    if (!to.there)
      found.emplace_back(peer, error{errc::unreachable, name_peer(peer) + " closed"});
    else if (!session_.linked(peer) && clock::now() > to.hello_due)
      found.emplace_back(peer,
                         error{errc::timed_out,
                               fmt::format("{} did not say hello within {} ms",
                                           name_peer(peer),
                                           options_.connect_deadline.count())});
  }
  for (const auto& [peer, why] : found)
    down(peer, why);
  return found.size();
}

void loopback_end::down(peer_key peer, const error& why) {
  session_.forget(peer);
  drop_link(peer, why);
}

void loopback_end::drop_link(peer_key peer, const error& why) {
  links_.erase(peer);
  if (down_handler_)
    down_handler_(peer, why);
}

result<void> loopback_end::close(std::chrono::milliseconds) {
  for (auto& [peer, to] : links_) {
    frame goodbye;
    goodbye.header.kind = static_cast<std::uint8_t>(frame_kind::goodbye);
    if (session_.linked(peer))
      push(peer, wrap(to, peer, std::move(goodbye), ++to.sequence));
  }
  links_.clear();
  here_->close();
  return {};
}

} // namespace

loopback_hub::loopback_hub() : registry_(std::make_shared<loopback_registry>()) {}

loopback_hub::~loopback_hub() = default;

result<std::unique_ptr<transport>> loopback_hub::make_end(const loopback_options& options) {
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event < 0)
    return error{errc::io_error, fmt::format("eventfd: {}", std::strerror(errno))};
  auto here = std::make_shared<inbox>(event);
  const std::lock_guard guard(registry_->lock);
  const auto port = registry_->next_port++;
  registry_->ends.emplace(port, here);
  return std::unique_ptr<transport>(
    std::make_unique<loopback_end>(registry_, std::move(here), port, options));
}

} // namespace troupe::transport
