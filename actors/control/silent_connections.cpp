#include "actors/control/silent_connections.hpp"

#include "config/log.hpp"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::actors {

namespace {

using std::chrono::milliseconds;

/// A member brings its certificate with the second part of its handshake; the first alone, or the
/// knock of a stranger, is shorter.
constexpr std::uint64_t least_handshake = 640;

std::optional<std::uint16_t> port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return std::nullopt;
}

std::optional<std::uint16_t> near_port(int descriptor) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    return std::nullopt;
  return port_of(address);
}

/// A TCP connection of this process; its descriptor may be closed and used again at any time, so
/// that only sockets are ever touched, and only in ways that harm none but a TCP connection.
struct connection {
  int descriptor;
  std::uint16_t near;
  std::uint16_t far;
  tcp_info info;
};

std::optional<connection> connection_at(int descriptor) {
  connection found{descriptor, 0, 0, {}};
  const auto near = near_port(descriptor);
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    return std::nullopt;
  const auto far = port_of(address);
  bytes = sizeof found.info;
  if (!near || !far || ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &found.info, &bytes) != 0)
    return std::nullopt;
  found.near = *near;
  found.far = *far;
  return found;
}

template <class Act>
void for_each_descriptor(Act act) {
  std::error_code none_left;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none_left)) {
    const auto name = entry.path().filename().string();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    act(descriptor);
  }
}

template <class Act>
void for_each_connection(Act act) {
  for_each_descriptor([&](int descriptor) {
    if (const auto found = connection_at(descriptor))
      act(*found);
  });
}

bool listens_at(int descriptor, std::uint16_t port) {
  int listens = 0;
  socklen_t bytes = sizeof listens;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || listens == 0)
    return false;
  return near_port(descriptor) == port;
}

} // namespace

void wait_for_first_words(std::uint16_t port) {
  static constexpr int seconds = 30;
  for_each_descriptor([port](int descriptor) {
    if (listens_at(descriptor, port))
      ::setsockopt(descriptor, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds);
  });
}

std::size_t break_silent_connections(std::uint16_t port, milliseconds patience) {
  std::size_t broken = 0;
  for_each_connection([&](const connection& one) {
    if ((one.near != port && one.far != port) || one.info.tcpi_bytes_received >= least_handshake
        || milliseconds{one.info.tcpi_last_data_recv} < patience)
      return;
    broken += ::shutdown(one.descriptor, SHUT_RDWR) == 0 ? 1 : 0;
  });
  return broken;
}

end_of_connections::end_of_connections(milliseconds patience)
  : thread_([this, patience] {
      std::unique_lock lock{mutex_};
      if (changed_.wait_for(lock, patience, [this] { return over_; }))
        return;
      log::debug("connections do not end within {} ms and are broken", patience.count());
      for_each_connection([](const connection& one) { ::shutdown(one.descriptor, SHUT_RDWR); });
    }) {}

end_of_connections::~end_of_connections() {
  {
    const std::lock_guard guard{mutex_};
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

} // namespace troupe::actors
