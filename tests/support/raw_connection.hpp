#pragma once
// A plain TCP connection to a port of this host, for tests that knock at doors.

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::tests {

/// Connected; the caller closes it. Ends the test when nobody listens there.
inline int connect_raw(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_REQUIRE(::connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return made;
}

/// The same, and it breaks off in the first word of a TLS handshake.
inline int break_off(std::uint16_t port) {
  const int made = connect_raw(port);
  constexpr char first[] = {0x16, 3, 1, 2, 0}; // A record of 512 bytes.
  BOOST_REQUIRE(::send(made, first, sizeof first, 0) == sizeof first);
  return made;
}

} // namespace troupe::tests
