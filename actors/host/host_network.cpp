#include "actors/host/host_network.hpp"

#include "config/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct free_addresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

using address_list = std::unique_ptr<addrinfo, free_addresses>;

result<address_list> resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (code != 0)
    return error{errc::unreachable,
                 fmt::format("the name {} is not known here: {}", host, ::gai_strerror(code))};
  return address_list(found);
}

std::string numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  std::string found = text.data();
  return found.substr(0, found.find('%')); // Without the interface of a link-local address.
}

// On a port of the ephemeral range a connect can meet itself; nobody listens there then.
bool met_itself(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) == 0
         && ::getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) == 0
         && here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

// The socket, or its errno.
struct attempt {
  open_socket socket;
  int code = 0;
};

attempt try_connect(const addrinfo& address, clock::time_point give_up) {
  attempt made{open_socket(::socket(
    address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol))};
  const int socket = made.socket.get();
  if (socket < 0 || ::connect(socket, address.ai_addr, address.ai_addrlen) != 0)
    made.code = errno;
  if (made.code == EINPROGRESS) {
    const auto left = std::chrono::duration_cast<milliseconds>(give_up - clock::now()).count();
    pollfd writable{socket, POLLOUT, 0};
    socklen_t size = sizeof made.code;
    if (::poll(&writable, 1, static_cast<int>(std::max<long>(left, 0))) <= 0)
      made.code = ETIMEDOUT;
    else
      ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &made.code, &size);
  }
  if (made.code == 0 && met_itself(socket))
    made.code = ECONNREFUSED;
  return made;
}

} // namespace

std::string name_endpoint(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

std::vector<std::string> addresses_of_this_host() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return found;
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr)
      continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET)
      found.push_back(numeric(entry->ifa_addr, sizeof(sockaddr_in)));
    if (family == AF_INET6)
      found.push_back(numeric(entry->ifa_addr, sizeof(sockaddr_in6)));
  }
  ::freeifaddrs(list);
  return found;
}

namespace {

std::string interface_of_numeric(const std::string& address) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return {};
  std::string found;
  for (const auto* entry = list; entry != nullptr && found.empty(); entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr)
      continue;
    const int family = entry->ifa_addr->sa_family;
    const auto size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (family != AF_INET && family != AF_INET6)
      continue;
    const bool loops = (entry->ifa_flags & IFF_LOOPBACK) != 0 && is_loopback(address);
    if (loops || numeric(entry->ifa_addr, size) == address)
      found = entry->ifa_name;
  }
  ::freeifaddrs(list);
  return found;
}

} // namespace

std::string interface_of(const std::string& host) {
  if (auto found = interface_of_numeric(host); !found.empty())
    return found;
  const auto list = resolve(host, 0, 0);
  if (!list)
    return {};
  // Many systems name themselves 127.0.1.1, where no other host finds them.
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ai_next)
    if (const auto address = numeric(entry->ai_addr, entry->ai_addrlen); !is_loopback(address))
      if (auto found = interface_of_numeric(address); !found.empty())
        return found;
  return {};
}

bool belongs_to_this_host(const std::string& host) {
  if (is_loopback(host))
    return true;
  const auto ours = addresses_of_this_host();
  const auto is_ours = [&](const std::string& address) {
    return is_loopback(address) || std::find(ours.begin(), ours.end(), address) != ours.end();
  };
  if (is_ours(canonical_address(host)))
    return true;
  const auto list = resolve(host, 0, 0);
  if (!list)
    return false;
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ai_next) {
    if (is_ours(numeric(entry->ai_addr, entry->ai_addrlen)))
      return true;
  }
  return false;
}

open_socket::~open_socket() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

result<open_socket> connect_to(const std::string& host, std::uint16_t port, milliseconds deadline) {
  const auto list = resolve(host, port, 0);
  if (!list)
    return list.error();
  const auto give_up = clock::now() + deadline;
  int code = EHOSTUNREACH;
  for (const auto* entry = list->get(); entry != nullptr; entry = entry->ai_next) {
    auto made = try_connect(*entry, give_up);
    if (made.code == 0)
      return std::move(made.socket);
    code = made.code;
  }
  if (code == ETIMEDOUT)
    return error{errc::timed_out,
                 fmt::format("{}: no answer within {} ms (is a firewall between?)",
                             name_endpoint(host, port),
                             deadline.count())};
  return error{errc::unreachable,
               fmt::format("{}: {}", name_endpoint(host, port), std::strerror(code))};
}

result<void> reach(const std::string& host, std::uint16_t port, milliseconds deadline) {
  const auto socket = connect_to(host, port, deadline);
  if (!socket)
    return socket.error();
  return {};
}

result<void> try_bind(const std::string& address, std::uint16_t port) {
  const auto list = resolve(address, port, AI_PASSIVE);
  if (!list)
    return list.error();
  const auto& first = **list;
  const open_socket socket(
    ::socket(first.ai_family, first.ai_socktype | SOCK_CLOEXEC, first.ai_protocol));
  const int on = 1;
  if (socket.get() >= 0)
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket.get() < 0 || ::bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0
      || ::listen(socket.get(), 1) != 0)
    return error{errc::io_error,
                 fmt::format("{}: {}", name_endpoint(address, port), std::strerror(errno))};
  return {};
}

} // namespace troupe::actors
