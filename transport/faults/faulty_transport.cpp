#include "transport/faults/faulty_transport.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>

namespace troupe::transport {

namespace {

static_assert(conductor_key == conductor_spot, "faults and wires name the conductor alike");

using clock = std::chrono::steady_clock;

wire_fault on_the_wire(fault_action what) {
  switch (what) {
  case fault_action::drop:
  case fault_action::cut: return wire_fault::lose;
  case fault_action::duplicate: return wire_fault::repeat;
  case fault_action::reorder: return wire_fault::swap;
  case fault_action::truncate: return wire_fault::shorten;
  case fault_action::corrupt: return wire_fault::flip_bit;
  default: return wire_fault::none;
  }
}

class faulty_transport final : public transport {
public:
  faulty_transport(std::unique_ptr<transport> inner, compute::fault_injector& faults)
    : inner_(std::move(inner)), faults_(faults) {}

  void on_frame(frame_handler handler) override { inner_->on_frame(std::move(handler)); }

  void on_down(down_handler handler) override {
    inner_->on_down([this, told = std::move(handler)](peer_key peer, const error& why) {
      late_.erase(peer);
      if (told)
        told(peer, why);
    });
  }

  peer_address address() const override { return inner_->address(); }

  void start_epoch(epoch_id epoch, peer_key self, const epoch_token& token) override {
    late_.clear();
    inner_->start_epoch(epoch, self, token);
  }

  result<void> connect(peer_key peer, const peer_address& where) override {
    if (faults_.refuses_transport(peer))
      return refusal(fmt::format("connecting to {}", name_peer(peer)));
    if (faults_.is_cut(peer)) // No hello leaves; the peer's deadline will say so.
      return {};
    return inner_->connect(peer, where);
  }

  bool heard(peer_key peer) const override { return inner_->heard(peer); }

  result<void> send(peer_key peer, frame outgoing) override;

  void disturb_next(peer_key peer, wire_fault how, std::uint64_t seed) override {
    inner_->disturb_next(peer, how, seed);
  }

  std::size_t progress() override { return send_late() + inner_->progress(); }

  int event_fd() const override { return inner_->event_fd(); }

  bool arm() override { return late_.empty() && inner_->arm(); }

  result<link_info> link(peer_key peer) const override { return inner_->link(peer); }

  bool drained() const override { return late_.empty() && inner_->drained(); }

  const transport_counters& counters() const override { return inner_->counters(); }

  result<void> close(std::chrono::milliseconds deadline) override {
    late_.clear();
    return inner_->close(deadline);
  }

private:
  struct delayed {
    clock::time_point due;
    std::deque<frame> frames; ///< In order: those behind a delayed one wait, too.
  };

  static error refusal(const std::string& what) {
    return {errc::unreachable, what + " was refused on purpose (fail_transport)"};
  }

  std::size_t send_late();

  std::unique_ptr<transport> inner_;
  compute::fault_injector& faults_;
  std::map<peer_key, delayed> late_;
};

result<void> faulty_transport::send(peer_key peer, frame outgoing) {
  const auto met = faults_.meet_frame(peer);
  if (faults_.refuses_transport(peer))
    return refusal(fmt::format("a frame for {}", name_peer(peer)));
  if (faults_.is_cut(peer)) {
    inner_->disturb_next(peer, wire_fault::lose, 0);
    auto lost = inner_->send(peer, std::move(outgoing));
    return lost || lost.error().code != errc::unreachable ? lost : result<void>{};
  }
  for (const auto& one : met) {
    if (one.what == fault_action::delay)
      late_[peer].due = clock::now() + std::chrono::milliseconds{one.ms};
    else
      inner_->disturb_next(peer, on_the_wire(one.what), draw(one.seed, 0));
  }
  if (const auto waiting = late_.find(peer); waiting != late_.end()) {
    waiting->second.frames.push_back(std::move(outgoing));
    return {};
  }
  return inner_->send(peer, std::move(outgoing));
}

std::size_t faulty_transport::send_late() {
  std::size_t sent = 0;
  const auto now = clock::now();
  for (auto waiting = late_.begin(); waiting != late_.end();) {
    if (now < waiting->second.due) {
      ++waiting;
      continue;
    }
    auto frames = std::move(waiting->second.frames);
    const auto peer = waiting->first;
    waiting = late_.erase(waiting);
    for (auto& late : frames) {
      // A link that went down meanwhile was told to the owner by its down handler.
      if (auto gone = inner_->send(peer, std::move(late)); !gone)
        break;
      ++sent;
    }
  }
  return sent;
}

} // namespace

std::unique_ptr<transport> make_faulty_transport(std::unique_ptr<transport> inner,
                                                 compute::fault_injector& faults) {
  return std::make_unique<faulty_transport>(std::move(inner), faults);
}

} // namespace troupe::transport
