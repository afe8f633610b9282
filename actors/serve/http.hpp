#pragma once
// HTTP as the rest of the house sees it: a request, and the exchange through which its answer goes
// out. Knows no HTTP library, and nothing of tokens.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::actors::serve {

/// Name and value.
using http_header = std::pair<std::string, std::string>;

/// A request that was read whole and within the limits.
struct http_request {
  std::string id; ///< X-Request-Id of the client, or one of ours.
  std::string method;
  std::string path;  ///< As it was sent, without the query.
  std::string query; ///< Behind the '?'.
  std::string body;
  std::string host;
  std::string origin; ///< The web page that a browser sends it for.
  std::string authorization;
  std::string peer; ///< Address of the client, for logs.
};

struct http_response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<http_header> headers;
};

/// One request and the way of its answer: either respond() once, or begin_events(), any number of
/// send_event(), and finish(). Any thread may answer, one at a time; what comes after the client
/// has left or after the end is dropped.
class http_exchange {
public:
  explicit http_exchange(http_request asked) : request_(std::move(asked)) {}

  virtual ~http_exchange() = default;

  http_exchange(const http_exchange&) = delete;
  http_exchange& operator=(const http_exchange&) = delete;

  const http_request& request() const noexcept { return request_; }

  /// Headers that the answer carries in any case. Before the answer.
  virtual void add_headers(std::vector<http_header> headers) = 0;

  /// The whole answer.
  virtual void respond(http_response answer) = 0;

  /// A stream of server-sent events begins. While nothing is sent for a while, a comment is.
  virtual void begin_events() = 0;

  /// One event; `data` holds no line break.
  virtual void send_event(std::string_view data) = 0;

  /// The stream is complete.
  virtual void finish() = 0;

  /// There is no answer, or not the rest of it: the connection is cut.
  virtual void abandon() = 0;

  /// `then` runs once if the client leaves (or is cut off for reading too slowly) before the answer
  /// is complete; at once if it has left already. On the caller's or the server's thread.
  virtual void on_gone(std::function<void()> then) = 0;

  /// Whether begin_events() was called.
  virtual bool streams() const = 0;

private:
  http_request request_;
};

using exchange_handle = std::shared_ptr<http_exchange>;

/// "Too Many Requests".
std::string_view reason_phrase(unsigned status) noexcept;

} // namespace troupe::actors::serve
