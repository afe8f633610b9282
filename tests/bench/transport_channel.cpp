#include "tests/bench/channel.hpp"
#include "transport/ucx/ucx_transport.hpp"

namespace troupe::bench {

namespace {

namespace wire = troupe::transport;

class transport_channel final : public channel {
public:
  transport_channel(const std::string& transports, unsigned self) : peer_(1 - self) {
    wire::ucx_options options;
    options.transports = transports;
    if (transports == "tcp")
      options.devices = {"lo"};
    auto made = wire::make_ucx_transport(options);
    check(made.has_value(), "UCX starts");
    wires_ = std::move(*made);
    wires_->start_epoch(epoch_id{1}, self, {});
    wires_->on_frame([this](wire::peer_key, wire::frame&&) { ++received_; });
  }

  std::vector<std::byte> address() override { return wires_->address().bytes; }

  void connect(std::span<const std::byte> peer) override {
    check(wires_->connect(peer_, {{peer.begin(), peer.end()}}).has_value(), "a peer is there");
  }

  void post(const compute::buffer& payload) override {
    wire::frame leaving;
    leaving.header.kind = wire::first_message_kind;
    leaving.payload = payload;
    check(wires_->send(peer_, std::move(leaving)).has_value(), "a frame is taken");
  }

  std::size_t receive() override {
    wires_->progress();
    return std::exchange(received_, 0);
  }

  bool idle() override { return wires_->drained(); }

private:
  const wire::peer_key peer_;
  std::unique_ptr<wire::transport> wires_;
  std::size_t received_ = 0;
};

} // namespace

std::unique_ptr<channel> make_transport_channel(const std::string& transports, unsigned self) {
  return std::make_unique<transport_channel>(transports, self);
}

} // namespace troupe::bench
