#pragma once
// HTTP over a raw socket, for tests: bytes as they are, answers whole, events one by one. Nothing
// of the server's own code is in it.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::tests {

struct http_reply {
  unsigned status = 0;
  std::map<std::string, std::string> headers; ///< Names in lower case.
  std::string body;
};

class http_socket {
public:
  using milliseconds = std::chrono::milliseconds;

  /// Connects to loopback; ends the test where nobody listens. `receive_bytes`: of the kernel's
  /// buffer, for a reader that is slow on purpose.
  explicit http_socket(std::uint16_t port, int receive_bytes = 0);
  ~http_socket();

  http_socket(http_socket&& other) noexcept;
  http_socket& operator=(http_socket&& other) noexcept;

  /// False when the other side has closed.
  bool send(std::string_view bytes);

  /// "POST path" with a JSON body, or a GET where the body is empty.
  void ask(std::string_view path,
           std::string_view body = {},
           const std::vector<std::string>& headers = {});

  /// The next answer, whole; nullopt when it did not come in time or is cut.
  std::optional<http_reply> receive(milliseconds deadline = milliseconds{10'000});

  /// Status and headers of the next answer, for a stream.
  std::optional<http_reply> receive_header(milliseconds deadline = milliseconds{10'000});

  /// The next event of a stream whose header was received: its data, or a comment with its ':'.
  /// nullopt at the end of the stream, or when none came in time.
  std::optional<std::string> next_event(milliseconds deadline = milliseconds{10'000});

  /// All data until the stream ends, comments left out; "[DONE]" included.
  std::vector<std::string> all_events(milliseconds deadline = milliseconds{20'000});

  /// Whether the other side closes, within the deadline; what it sends before is dropped.
  bool is_closed(milliseconds deadline);

  /// Closes our side; `reset` without the usual goodbye.
  void close(bool reset = false);

private:
  bool fill(std::chrono::steady_clock::time_point until);
  std::optional<std::string> line(std::chrono::steady_clock::time_point until);
  bool take_chunk(std::chrono::steady_clock::time_point until);

  int socket_ = -1;
  std::string pending_; ///< Received, not used.
  std::string events_;  ///< The body of a stream, not used.
  bool chunked_ = false;
  bool ended_ = false; ///< The stream.
};

/// One request on a connection of its own; ends the test when no answer comes.
http_reply ask_http(std::uint16_t port,
                    std::string_view path,
                    std::string_view body = {},
                    const std::vector<std::string>& headers = {});

} // namespace troupe::tests
