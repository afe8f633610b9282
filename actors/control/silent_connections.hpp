#pragma once
// TLS connections whose other side fell silent in the handshake. The framework waits for them
// without a deadline, looks at such a one again and again, which keeps a core busy, and does not
// end while it lives. What the system says of this process's sockets is enough to find them. Any
// thread.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe::actors {

/// The system keeps connections to this process's listener at `port` to itself until they say
/// something, for half a minute at least: a TLS client speaks first.
void wait_for_first_words(std::uint16_t port);

/// Breaks the connections from or to `port` that have brought less than a member's handshake, and
/// nothing for as long as `patience`. Returns how many.
std::size_t break_silent_connections(std::uint16_t port, std::chrono::milliseconds patience);

/// While it lives, an end is under way: if that takes longer than `patience`, all TCP connections
/// of this process are broken.
class end_of_connections {
public:
  explicit end_of_connections(std::chrono::milliseconds patience);
  ~end_of_connections();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false; ///< Guarded by mutex_.
  std::thread thread_;
};

} // namespace troupe::actors
