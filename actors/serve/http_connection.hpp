#pragma once
// One connection of the HTTP server: reads requests, one answered at a time, and writes. Lives on
// the server's thread; ends when nobody holds it.

#include "actors/serve/http_server.hpp"

#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;

namespace ssl {
class context;
}
} // namespace boost::asio

namespace troupe::actors::serve {

class http_connection {
public:
  using clock = std::chrono::steady_clock;

  virtual ~http_connection() = default;

  virtual void start() = 0;

  /// Looks at deadlines; several times a second.
  virtual void look(clock::time_point now) = 0;

  /// Takes no further request; ends with the answer that is under way.
  virtual void drain() = 0;

  /// Ends now.
  virtual void cut() = 0;

  /// Answers "503" without reading, and ends.
  virtual void turn_away(const std::string& why) = 0;
};

/// What connections share.
struct connection_place {
  std::shared_ptr<boost::asio::io_context> loop;
  std::shared_ptr<boost::asio::ssl::context> tls; ///< Null: plain.
  std::shared_ptr<const http_options> options;
  std::function<void(http_connection*)> on_end; ///< On the server's thread; the last word.
};

/// Takes over an accepted socket.
std::shared_ptr<http_connection>
make_http_connection(const connection_place& place, int socket, std::string peer);

} // namespace troupe::actors::serve
