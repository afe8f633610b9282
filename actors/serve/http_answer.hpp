#pragma once
// The answer to one request as bytes: framing, what is not sent yet, and the two threads that meet
// over it (whoever answers, and the server's). No HTTP library, no socket.

#include "actors/serve/http.hpp"

#include <cstddef>
#include <mutex>

namespace troupe::actors::serve {

class http_answer final : public http_exchange {
public:
  struct framing {
    bool chunked = true;    ///< HTTP/1.1; without it a stream ends with its connection.
    bool head_only = false; ///< HEAD: the header alone.
    bool keep_alive = true; ///< What the client wants of the connection.
  };

  /// `wake` is called, from any thread, when there is something to take().
  http_answer(http_request asked, framing how, std::size_t most_unsent, std::function<void()> wake);

  // Whoever answers; any thread.

  void add_headers(std::vector<http_header> headers) override;
  void respond(http_response answer) override;
  void begin_events() override;
  void send_event(std::string_view data) override;
  void finish() override;
  void abandon() override;
  void on_gone(std::function<void()> then) override;
  bool streams() const override;

  // The connection; the server's thread.

  struct output {
    std::string bytes;
    bool complete = false; ///< Nothing follows.
    bool cut = false;      ///< The connection is to be cut now: abandoned, or read too slowly.
  };

  output take();

  /// So many bytes went out.
  void sent(std::size_t bytes);

  /// A sign of life, if it is a stream that is not complete and has nothing unsent.
  void send_comment(std::string_view text);

  /// The connection is gone: runs on_gone unless the answer was complete. wake is not called again.
  void detach();

  /// Whether the connection may take another request after this answer. Once it is complete.
  bool keeps_alive() const;

  /// The status that was answered; 0 before.
  unsigned status() const;

private:
  void append_header(unsigned status,
                     std::string_view content_type,
                     const std::vector<http_header>& headers,
                     std::string_view length);
  void append(std::string_view bytes);
  void append_part(std::string_view bytes);
  void end(bool how_cut, std::unique_lock<std::mutex>& lock);
  void call(std::unique_lock<std::mutex>& lock);

  const framing how_;
  const std::size_t most_unsent_;

  mutable std::mutex mutex_; ///< Guards all that follows.
  std::function<void()> wake_;
  std::function<void()> gone_handler_;
  std::vector<http_header> headers_;
  std::string pending_;
  std::size_t unsent_ = 0; ///< pending_ and what was taken but has not gone out.
  unsigned status_ = 0;
  bool called_ = false; ///< wake was called since the last take().
  bool streams_ = false;
  bool complete_ = false;
  bool cut_ = false;
  bool gone_ = false;
};

} // namespace troupe::actors::serve
