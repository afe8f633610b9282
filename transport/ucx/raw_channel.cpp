// make_raw_channel (transport/ucx/channel.hpp): UCX alone.
#include "transport/ucx/channel.hpp"
#include "transport/ucx/error.hpp"

#include <ucp/api/ucp.h>

#include <array>
#include <utility>

namespace troupe::transport {

namespace {

constexpr unsigned message_id = 1;
constexpr std::size_t tcp_eager_limit = std::size_t{512} << 10; // The transport's own choice.

constexpr std::size_t largest_message = std::size_t{64} << 20;

/// Large messages that are received at the same time.
constexpr std::size_t most_in_flight = 4;

/// The least that moves messages with failures reported: a header that nobody reads, eager payloads
/// read where they are, large ones received into a few buffers in turn.
class raw_channel final : public channel {
public:
  explicit raw_channel(const std::string& transports) : tcp_(transports == tcp_transports) {}

  result<void> start(const std::string& transports) {
    for (auto& each : targets_) {
      auto memory = compute::buffer::allocate(largest_message);
      if (!memory)
        return memory.error();
      each = {this, std::move(*memory), 0};
    }
    ucp_config_t* config = nullptr;
    if (const auto read = ucp_config_read(nullptr, nullptr, &config); read != UCS_OK)
      return ucx::to_error(read, "read the settings of UCX");
    ucp_config_modify(config, "TLS", transports.c_str());
    if (tcp_)
      ucp_config_modify(config, "NET_DEVICES", "lo");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    const auto made = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    return made == UCS_OK ? start_worker() : ucx::to_error(made, "start UCX with " + transports);
  }

  ~raw_channel() override {
    if (endpoint_ != nullptr)
      close();
    if (worker_ != nullptr)
      ucp_worker_destroy(worker_);
    if (context_ != nullptr)
      ucp_cleanup(context_);
  }

  std::vector<std::byte> address() override {
    ucp_address_t* found = nullptr;
    std::size_t bytes = 0;
    check(ucp_worker_get_address(worker_, &found, &bytes) == UCS_OK, "a worker has an address");
    const auto* begin = reinterpret_cast<const std::byte*>(found);
    std::vector<std::byte> copied(begin, begin + bytes);
    ucp_worker_release_address(worker_, found);
    return copied;
  }

  result<void> connect(std::span<const std::byte> peer) override {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    const auto made = ucp_ep_create(worker_, &params, &endpoint_);
    return made == UCS_OK ? result<void>{} : ucx::to_error(made, "connect the raw channel");
  }

  void post(const compute::buffer& payload) override {
    ucp_request_param_t param{};
    param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.cb.send = sent;
    param.user_data = this;
    if (tcp_ && payload.size() <= tcp_eager_limit) {
      param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_AM_SEND_FLAG_EAGER;
    }
    auto* request = ucp_am_send_nbx(endpoint_,
                                    message_id,
                                    header_.data(),
                                    header_.size(),
                                    payload.data(),
                                    payload.size(),
                                    &param);
    posted_ += UCS_PTR_IS_PTR(request) ? 1 : 0;
  }

  std::size_t receive() override {
    ucp_worker_progress(worker_);
    return std::exchange(received_, 0);
  }

  bool idle() override { return posted_ == 0; }

private:
  result<void> start_worker() {
    ucp_worker_params_t wanted{};
    wanted.field_mask = UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
    wanted.am_alignment = 64;
    if (const auto made = ucp_worker_create(context_, &wanted, &worker_); made != UCS_OK)
      return ucx::to_error(made, "make a worker of UCX");
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB
                         | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = message_id;
    handler.cb = arrived;
    handler.arg = this;
    const auto set = ucp_worker_set_am_recv_handler(worker_, &handler);
    return set == UCS_OK ? result<void>{} : ucx::to_error(set, "listen for active messages");
  }

  void close() {
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    auto* closing = ucp_ep_close_nbx(endpoint_, &force);
    while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS)
      ucp_worker_progress(worker_);
    if (UCS_PTR_IS_PTR(closing))
      ucp_request_free(closing);
  }

  static ucs_status_t arrived(void* self,
                              const void*,
                              std::size_t,
                              void* data,
                              std::size_t bytes,
                              const ucp_am_recv_param_t* how) {
    auto& mine = *static_cast<raw_channel*>(self);
    if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      read_lines(static_cast<const std::byte*>(data), bytes);
      ++mine.received_;
      return UCS_OK;
    }
    auto& to = mine.targets_[mine.next_target_++ % most_in_flight];
    to.bytes = bytes;
    ucp_request_param_t param{};
    param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.cb.recv_am = pulled;
    param.user_data = &to;
    auto* request = ucp_am_recv_data_nbx(mine.worker_, data, to.memory.data(), bytes, &param);
    if (!UCS_PTR_IS_PTR(request))
      to.full();
    return UCS_INPROGRESS;
  }

  static void sent(void* request, ucs_status_t, void* self) {
    ucp_request_free(request);
    --static_cast<raw_channel*>(self)->posted_;
  }

  static void pulled(void* request, ucs_status_t, std::size_t, void* to) {
    ucp_request_free(request);
    static_cast<target*>(to)->full();
  }

  /// Where a large message goes.
  struct target {
    raw_channel* home = nullptr;
    compute::buffer memory;
    std::size_t bytes = 0; ///< Of the message.

    void full() const {
      read_lines(memory.data(), bytes);
      ++home->received_;
    }
  };

  const bool tcp_;
  std::array<target, most_in_flight> targets_;
  std::size_t next_target_ = 0;
  std::array<std::byte, 96> header_{}; // As many bytes as the transport's.
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::size_t posted_ = 0;
  std::size_t received_ = 0;
};

} // namespace

result<std::unique_ptr<channel>> make_raw_channel(const std::string& transports) {
  auto made = std::make_unique<raw_channel>(transports);
  if (auto started = made->start(transports); !started)
    return started.error();
  return std::unique_ptr<channel>(std::move(made));
}

} // namespace troupe::transport
