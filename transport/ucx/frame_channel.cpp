// make_frame_channel (transport/ucx/channel.hpp): frames of the transport.
#include "transport/ucx/channel.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <utility>

namespace troupe::transport {

namespace {

class frame_channel final : public channel {
public:
  frame_channel(std::unique_ptr<transport> wires, unsigned self)
    : peer_(1 - self), wires_(std::move(wires)) {
    wires_->start_epoch(epoch_id{1}, self, {});
    wires_->on_frame([this](peer_key, frame&& received) {
      read_lines(received.payload.data(), received.payload.size());
      ++received_;
    });
  }

  std::vector<std::byte> address() override { return wires_->address().bytes; }

  result<void> connect(std::span<const std::byte> peer) override {
    return wires_->connect(peer_, {{peer.begin(), peer.end()}});
  }

  void post(const compute::buffer& payload) override {
    frame leaving;
    leaving.header.kind = first_message_kind;
    leaving.payload = payload;
    check(wires_->send(peer_, std::move(leaving)).has_value(), "a frame is taken");
  }

  std::size_t receive() override {
    wires_->progress();
    return std::exchange(received_, 0);
  }

  bool idle() override { return wires_->drained(); }

private:
  const peer_key peer_;
  std::unique_ptr<transport> wires_;
  std::size_t received_ = 0;
};

} // namespace

result<std::unique_ptr<channel>> make_frame_channel(const std::string& transports, unsigned self) {
  ucx_options options;
  options.transports = transports;
  if (transports == tcp_transports)
    options.devices = {"lo"};
  auto wires = make_ucx_transport(options);
  if (!wires)
    return wires.error();
  return std::unique_ptr<channel>(std::make_unique<frame_channel>(std::move(*wires), self));
}

} // namespace troupe::transport
