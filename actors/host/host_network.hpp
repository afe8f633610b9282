#pragma once
// What this host's own sockets say: which addresses it has, whether a port is free, whether
// somebody listens elsewhere. In plain words and with deadlines, where the actor framework has
// neither. Any thread; no state.

#include "config/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// "10.0.0.5:7000", "[fe80::1]:7000".
std::string name_endpoint(const std::string& host, std::uint16_t port);

/// Addresses of this host's interfaces, without their prefix, loopback included.
std::vector<std::string> addresses_of_this_host();

/// The interface that carries an address of this host, "lo" for all of 127.0.0.0/8, or the address
/// that a name stands for, if others can reach it; empty when no single interface does (0.0.0.0, an
/// address of another host).
std::string interface_of(const std::string& host);

/// True for loopback, for every address of an interface, and for names that resolve to one.
bool belongs_to_this_host(const std::string& host);

/// A socket that closes itself.
class open_socket {
public:
  explicit open_socket(int descriptor) : descriptor_(descriptor) {}

  open_socket(open_socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

  open_socket& operator=(open_socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  ~open_socket();

  int get() const noexcept { return descriptor_; }

private:
  int descriptor_;
};

/// Connects; the socket does not block. Errors: as reach().
result<open_socket>
connect_to(const std::string& host, std::uint16_t port, std::chrono::milliseconds deadline);

/// Somebody listens there. Connects and closes again. Errors: unreachable (with the system's
/// reason: refused, no route, name not known), timed_out (nothing answered, as behind a firewall).
result<void> reach(const std::string& host, std::uint16_t port, std::chrono::milliseconds deadline);

/// A listener could be opened there now. Errors: io_error with the system's reason.
result<void> try_bind(const std::string& address, std::uint16_t port);

} // namespace troupe::actors
