#include "transport/ucx/worker.hpp"

#include "transport/ucx/error.hpp"
#include "transport/ucx/segment_folder.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

namespace troupe::transport::ucx {

namespace {

constexpr unsigned message_id = 1;

/// Up to here a payload goes eagerly. UCX's own choice is rendezvous from 8 KiB on; over TCP that
/// takes up to eight times as long. Endpoints that report failures do without cross-memory attach
/// (UCX 1.13), so through shared memory rendezvous has no copy to save: 8 KiB 4.0 us against 1.4.
constexpr std::size_t tcp_eager_limit = std::size_t{512} << 10;
constexpr std::size_t memory_eager_limit = std::size_t{256} << 10;

/// Elements of tensors and words of control payloads are read in place.
constexpr std::size_t usable_alignment = 8;
constexpr std::size_t wished_alignment = 64;

void set(ucp_config_t* config, const char* key, const std::string& value) {
  // Always succeeds: a value that is not known shows when the context is made.
  if (!value.empty())
    ucp_config_modify(config, key, value.c_str());
}

ucp_request_param_t request_for(void* operation) {
  ucp_request_param_t param{};
  param.op_attr_mask =
    UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  param.user_data = operation;
  return param;
}

} // namespace

/// What UCX calls. Nothing in here closes or destroys anything of UCX.
struct callbacks {
  static ucs_status_t arrived(void* home,
                              const void* header,
                              std::size_t header_bytes,
                              void* data,
                              std::size_t bytes,
                              const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<worker*>(home);
    self.happened = true;
    arrival found;
    found.header = {static_cast<const std::byte*>(header), header_bytes};
    found.data = static_cast<std::byte*>(data);
    found.bytes = bytes;
    found.rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    found.persistent = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    return self.on_arrival_ && self.on_arrival_(found) ? UCS_INPROGRESS : UCS_OK;
  }

  static void sent(void* request, ucs_status_t status, void* operation) {
    ucp_request_free(request);
    auto& done = *static_cast<worker::send_operation*>(operation);
    done.home->finished(done, status);
  }

  static void received(void* request, ucs_status_t status, std::size_t, void* operation) {
    ucp_request_free(request);
    auto& done = *static_cast<worker::receive_operation*>(operation);
    done.home->finished(done, status);
  }

  static void failed(void* of, ucp_ep_h, ucs_status_t status) {
    auto& to = *static_cast<wire*>(of);
    if (to.status == UCS_OK)
      to.status = status;
    *to.happened = true;
  }
};

result<std::shared_ptr<worker>> worker::make(const ucx_options& options) {
  std::shared_ptr<worker> made(new worker);
  if (auto started = made->start(options); !started)
    return started.error();
  return made;
}

/// UCX takes any name of a device and leaves out what it does not find: the worker would reach
/// nobody, and say so only when it is to connect.
result<void> check_devices(const std::vector<std::string>& wanted) {
  if (wanted.empty())
    return {};
  const auto known = list_ucx_devices();
  if (!known)
    return known.error();
  std::set<std::string> names;
  for (const auto& one : *known)
    names.insert(one.device);
  for (const auto& name : wanted)
    if (name != "all" && name.find_first_of("*^") == std::string::npos && !names.contains(name))
      return error{errc::invalid_config,
                   fmt::format("UCX finds no device \"{}\" on this host; these would work: {}",
                               name,
                               fmt::join(names, ", "))};
  return {};
}

result<void> worker::start(const ucx_options& options) {
  if (auto there = check_devices(options.devices); !there)
    return there.error();
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return to_error(status, "read the configuration of UCX");
  set(config, "TLS", options.transports);
  set(config, "NET_DEVICES", fmt::format("{}", fmt::join(options.devices, ",")));
  if (std::getenv("UCX_POSIX_DIR") == nullptr) // the key has no prefix here (UCX 1.13)
    set(config, "DIR", segment_folder().string());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const auto status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status != UCS_OK)
    return to_error(status,
                    fmt::format("start UCX with transports \"{}\" and devices \"{}\"",
                                options.transports,
                                fmt::join(options.devices, ",")));
  return start_worker();
}

result<void> worker::start_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  params.am_alignment = wished_alignment;
  if (const auto status = ucp_worker_create(context_, &params, &worker_); status != UCS_OK)
    return to_error(status, "make a worker of UCX");
  if (const auto status = ucp_worker_get_efd(worker_, &event_fd_); status != UCS_OK)
    return to_error(status, "get the event descriptor of UCX");
  ucp_am_handler_param_t handler{};
  handler.field_mask =
    UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.cb = callbacks::arrived;
  handler.arg = this;
  if (const auto status = ucp_worker_set_am_recv_handler(worker_, &handler); status != UCS_OK)
    return to_error(status, "take messages from UCX");
  return {};
}

worker::~worker() {
  on_arrival_ = nullptr;
  if (worker_ != nullptr) {
    for (auto& to : wires_) {
      to.shut = true;
      if (to.endpoint != nullptr)
        close(to);
    }
    // Closing by force is quick; a wire that does not close is left to the worker's end.
    for (int rounds = 0; rounds < 1000 && !all_shut(); ++rounds)
      progress();
    release_descriptors();
    ucp_worker_destroy(worker_);
  }
  if (context_ != nullptr)
    ucp_cleanup(context_);
}

result<std::vector<std::byte>> worker::address() const {
  ucp_address_t* found = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(worker_, &found, &bytes); status != UCS_OK)
    return to_error(status, "get the address of the worker");
  const auto* begin = reinterpret_cast<const std::byte*>(found);
  std::vector<std::byte> copied(begin, begin + bytes);
  ucp_worker_release_address(worker_, found);
  return copied;
}

result<wire*> worker::open(const std::vector<std::byte>& address) {
  for (auto& known : wires_)
    if (!known.shut && known.status == UCS_OK && known.address == address)
      return &known;
  auto& made = wires_.emplace_back();
  made.address = address;
  made.happened = &happened;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                      | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(made.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {callbacks::failed, &made};
  if (const auto status = ucp_ep_create(worker_, &params, &made.endpoint); status != UCS_OK) {
    wires_.pop_back();
    return to_error(status, "make an endpoint");
  }
  made.info = describe(made);
  return &made;
}

void worker::flush(wire& to) {
  ucp_request_param_t param{};
  auto* request = ucp_ep_flush_nbx(to.endpoint, &param);
  to.flushing = UCS_PTR_IS_PTR(request) ? request : nullptr;
  to.flushed = to.flushing == nullptr;
}

void worker::close(wire& to) {
  // By force, which a close that flushes cannot be turned into when its time is over.
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  auto* request = ucp_ep_close_nbx(to.endpoint, &param);
  to.endpoint = nullptr;
  to.closing = UCS_PTR_IS_PTR(request) ? request : nullptr;
}

void worker::shut_idle() {
  for (auto& to : wires_)
    if (to.links == 0)
      to.shut = true;
}

bool worker::all_shut() const {
  for (const auto& to : wires_)
    if (to.shut)
      return false;
  return true;
}

namespace {

/// Whether UCX is done with a request; then it is given back.
bool ended(void*& request) {
  if (request == nullptr)
    return true;
  if (ucp_request_check_status(request) == UCS_INPROGRESS)
    return false;
  ucp_request_free(request);
  request = nullptr;
  return true;
}

} // namespace

bool worker::step_to_close(wire& to) {
  if (to.endpoint != nullptr) {
    const bool failed = to.status != UCS_OK;
    if (!failed && to.posted != 0)
      return false;
    if (!failed && !to.flushed && to.flushing == nullptr)
      flush(to);
    if (!ended(to.flushing) && !failed)
      return false;
    close(to);
  }
  return ended(to.flushing) && ended(to.closing) && to.posted == 0;
}

void worker::reap() {
  std::erase_if(wires_, [this](wire& to) {
    if (to.links == 0 && to.status != UCS_OK)
      to.shut = true;
    return to.shut && step_to_close(to);
  });
}

void worker::post(wire& to, const wire_header& header, compute::buffer payload) {
  auto& operation = sends_.take();
  operation.home = this;
  operation.to = &to;
  operation.header = header;
  operation.payload = std::move(payload);
  const auto bytes = operation.payload.size();
  ++to.posted;
  to.posted_bytes += bytes;
  auto param = request_for(&operation);
  param.cb.send = callbacks::sent;
  if (bytes > 0 && bytes <= (to.info.shared_memory ? memory_eager_limit : tcp_eager_limit)) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
  }
  auto* request = ucp_am_send_nbx(to.endpoint,
                                  message_id,
                                  operation.header.data(),
                                  operation.header.size(),
                                  operation.payload.data(),
                                  bytes,
                                  &param);
  if (!UCS_PTR_IS_PTR(request))
    finished(operation, UCS_PTR_STATUS(request));
}

void worker::finished(send_operation& done, ucs_status_t status) {
  auto& to = *done.to;
  --to.posted;
  to.posted_bytes -= done.payload.size();
  if (status != UCS_OK && to.status == UCS_OK) {
    to.status = status;
    happened = true;
  }
  done.payload = {};
  sends_.put(done);
}

result<compute::buffer> worker::take(const arrival& from, bool& kept, bool& copied) {
  const bool usable = reinterpret_cast<std::uintptr_t>(from.data) % usable_alignment == 0;
  if (from.persistent && usable && !descriptors_.full()) {
    kept = true;
    descriptors_.lend();
    std::shared_ptr<void> owner(from.data, [home = shared_from_this()](void* descriptor) {
      home->descriptors_.put(descriptor);
    });
    return compute::buffer::adopt(from.data, from.bytes, std::move(owner));
  }
  auto copy = buffers_.take(from.bytes);
  if (!copy)
    return copy;
  copied = true;
  std::memcpy(copy->data(), from.data, from.bytes);
  return copy;
}

result<void> worker::pull(const std::shared_ptr<rendezvous>& payload, std::size_t bytes) {
  auto target = buffers_.take(bytes);
  if (!target)
    return target.error();
  payload->payload = std::move(*target);
  payload->now = rendezvous::state::moving;
  auto& operation = receives_.take();
  operation.home = this;
  operation.payload = payload;
  auto param = request_for(&operation);
  param.cb.recv_am = callbacks::received;
  auto* request =
    ucp_am_recv_data_nbx(worker_, payload->descriptor, payload->payload.data(), bytes, &param);
  if (!UCS_PTR_IS_PTR(request))
    finished(operation, UCS_PTR_STATUS(request));
  return {};
}

void worker::finished(receive_operation& done, ucs_status_t status) {
  happened = true;
  done.payload->status = status;
  done.payload->now = status == UCS_OK ? rendezvous::state::ready : rendezvous::state::failed;
  done.payload.reset();
  receives_.put(done);
}

void worker::drop(rendezvous& payload) {
  if (payload.now == rendezvous::state::held)
    ucp_am_data_release(worker_, payload.descriptor);
  payload.now = rendezvous::state::failed;
}

void worker::release_descriptors() {
  for (void* descriptor : descriptors_.take())
    ucp_am_data_release(worker_, descriptor);
}

std::size_t worker::progress() {
  release_descriptors();
  const auto count = ucp_worker_progress(worker_);
  reap();
  return count;
}

bool worker::arm() {
  release_descriptors();
  return ucp_worker_arm(worker_) == UCS_OK;
}

link_info worker::describe(const wire& to) const {
  // UCX 1.13 tells the lanes of an endpoint only in print; a line reads
  //   lane[0]:  1:posix/memory.0 md[1]   -> md[1]/posix/sysdev[255] am am_bw#0 keepalive
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  if (out == nullptr)
    return {};
  ucp_ep_print_info(to.endpoint, out);
  std::fclose(out);
  link_info found;
  std::string_view rest(text, size);
  for (auto at = rest.find("lane["); at != std::string_view::npos; at = rest.find("lane[")) {
    rest.remove_prefix(at);
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size());
    const auto colon = line.find(':', line.find("]:") + 2);
    if (colon == std::string_view::npos)
      continue;
    const auto name = line.substr(colon + 1, line.find('.', colon) - colon - 1);
    if (!found.transports.empty())
      found.transports += ' ';
    found.transports += name;
    const auto kind = name.substr(0, name.find('/'));
    if (line.find(" am ") != std::string_view::npos)
      found.shared_memory = kind == "posix" || kind == "sysv" || kind == "self" || kind == "xpmem";
  }
  std::free(text);
  return found;
}

} // namespace troupe::transport::ucx
