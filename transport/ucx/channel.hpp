#pragma once
// Two ways to move the same payloads between two processes of a host, so that their times can be
// compared in one run: raw active messages of UCX, and the transport on top of them. Both read what
// they get. A yardstick, not a road: one peer, no faults, no deadlines. One thread.

#include "compute/buffer.hpp"
#include "config/result.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::transport {

/// UCX_TLS for two processes of one host, as the transport chooses it by itself.
inline constexpr const char* shared_memory_transports = "posix,sysv,cma,self";
/// UCX_TLS for TCP, here over the loopback device.
inline constexpr const char* tcp_transports = "tcp";

class channel {
public:
  virtual ~channel() = default;

  /// How the other end connects.
  virtual std::vector<std::byte> address() = 0;
  virtual result<void> connect(std::span<const std::byte> peer) = 0;

  /// Takes a message; it leaves with this call or with later ones of receive().
  virtual void post(const compute::buffer& payload) = 0;

  /// Progresses once; how many messages came.
  virtual std::size_t receive() = 0;

  /// Whether all that was posted has left.
  virtual bool idle() = 0;
};

/// Reads each line of a payload, as whoever gets it does: a payload that nobody looks at never
/// comes from the core of its sender, which is most of the way of some KiB.
inline void read_lines(const std::byte* data, std::size_t bytes) noexcept {
  unsigned sum = 0;
  for (std::size_t i = 0; i < bytes; i += 64)
    sum += std::to_integer<unsigned>(data[i]);
  asm volatile("" : : "r"(sum)); // The compiler must not see that nobody wants it.
}

/// transports as in UCX_TLS. Errors: those of UCX, out_of_memory.
result<std::unique_ptr<channel>> make_raw_channel(const std::string& transports);

/// The same over a transport of ours; `self` is 0 or 1. Errors: those of make_ucx_transport.
result<std::unique_ptr<channel>> make_frame_channel(const std::string& transports, unsigned self);

} // namespace troupe::transport
