#pragma once
// The HTTP server: one thread, event-driven, however many connections. Knows what a request and a
// stream of events are, not what they mean.
//
// Boost.Beast parses; limits, deadlines, pipelining, and noticing at once that a client left are
// ours. HTTP/1.0 and 1.1, keep-alive, chunked streams, TLS where a certificate is given.

#include "actors/serve/http.hpp"
#include "config/result.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>

namespace troupe::actors::serve {

struct http_limits {
  std::size_t body_bytes = 0;
  std::size_t header_bytes = 0;
  std::size_t connections = 0;
  std::size_t stream_buffer_bytes = 0;    ///< Of one answer, unsent; more cuts its client off.
  std::chrono::milliseconds idle{};       ///< Between requests; also a write that does not move.
  std::chrono::milliseconds read{};       ///< A request, from its first byte to the last.
  std::chrono::milliseconds keep_alive{}; ///< Between two signs of life of a stream.
};

struct http_options {
  std::string bind;
  std::uint16_t port = 0;            ///< 0: any free one.
  std::filesystem::path certificate; ///< Empty: plain HTTP.
  std::filesystem::path key;
  http_limits limits;
  /// Called on the server's thread for each request; answers at once or later.
  std::function<void(exchange_handle)> on_request;
  /// Called on the server's thread when an answer is complete, with its status; or with 0 when its
  /// client left before.
  std::function<void(const http_request&, unsigned status)> on_answered;
  /// Makes the body of an answer to what is no request: 400, 408, 413, 431, 503.
  std::function<std::string(unsigned status, const std::string& what)> describe_error;
  /// What the comments of a silent stream say. On the server's thread.
  std::function<std::string()> describe_silence;
};

class http_server {
public:
  /// Binds and starts. Errors: io_error (taken, not of this host), invalid_config (certificate).
  static result<std::unique_ptr<http_server>> start(http_options options);

  virtual ~http_server() = default;

  virtual std::uint16_t port() const = 0;

  virtual std::size_t connections() const = 0;

  /// Accepts no more, gives running answers up to `grace` to end, then cuts all off. Once it
  /// returns, no callback runs any more, and exchanges that are still held drop what they are told.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

} // namespace troupe::actors::serve
