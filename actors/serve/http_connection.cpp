#include <utility> // before asio 1.74, which forgets it

#include "actors/serve/http_answer.hpp"
#include "actors/serve/http_connection.hpp"
#include "config/log.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <type_traits>

namespace troupe::actors::serve {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using clock = http_connection::clock;
using std::chrono::milliseconds;

// What a client may send ahead of the answer to its last request; then it is not read until that
// is complete. While it is read, a client that leaves is noticed at once.
constexpr std::size_t most_ahead = 64 << 10;

// After the last word the client gets so long to hang up first: an answer that is on its way when
// a connection is closed on unread bytes is lost.
constexpr milliseconds linger_time{2000};

std::string make_request_id() {
  static const std::uint64_t start =
    (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  static std::uint64_t count = 0; // the server's thread
  return fmt::format("req-{:016x}", start + count++);
}

// A client's own id is kept where it is harmless in headers and logs.
std::string request_id_of(std::string_view given) {
  constexpr std::size_t longest = 128;
  const bool good = !given.empty() && given.size() <= longest
                    && std::all_of(given.begin(), given.end(), [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
                                || (c >= 'A' && c <= 'Z')
                                || std::string_view("-_.:").find(c) != std::string_view::npos;
                       });
  return good ? std::string(given) : make_request_id();
}

std::pair<unsigned, std::string> describe_parse_error(const error_code& why,
                                                      const http_limits& limits) {
  if (why == http::error::body_limit)
    return {413,
            fmt::format("the body is longer than {} bytes (serve.body_bytes)", limits.body_bytes)};
  if (why == http::error::header_limit)
    return {
      431,
      fmt::format("the header is longer than {} bytes (serve.header_bytes)", limits.header_bytes)};
  return {400, "this is no HTTP request: " + why.message()};
}

template <class Stream>
class connection final : public http_connection,
                         public std::enable_shared_from_this<connection<Stream>> {
  static constexpr bool encrypted = !std::is_same_v<Stream, tcp::socket>;
  using parser_type = http::request_parser<http::string_body>;

public:
  template <class... Ts>
  connection(connection_place place, std::string peer, Ts&&... stream)
    : place_(std::move(place)), peer_(std::move(peer)), stream_(std::forward<Ts>(stream)...) {}

  void start() override {
    began_ = last_ = clock::now();
    if constexpr (encrypted) {
      state_ = state::greeting;
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](const error_code& why) {
                                if (why)
                                  return self->cut();
                                self->state_ = state::open;
                                self->last_ = clock::now();
                                self->read();
                              });
    } else {
      read();
    }
  }

  void look(clock::time_point now) override;
  void drain() override;
  void cut() override;
  void turn_away(const std::string& why) override;

private:
  enum class state : std::uint8_t { greeting, open, lingering, closed };

  tcp::socket& socket() {
    if constexpr (encrypted)
      return stream_.next_layer();
    else
      return stream_;
  }

  void read();
  void take_input();
  void parse();
  void answer_request();
  void refuse(unsigned status, const std::string& what);
  void lose();
  void flush();
  void write();
  void end_answer();
  void say_goodbye();

  connection_place place_;
  std::string peer_;
  Stream stream_;
  state state_ = state::open;
  bool reading_ = false;
  bool writing_ = false;
  bool draining_ = false;
  bool refused_ = false;     ///< What comes is no HTTP; nothing is parsed any more.
  bool leaving_ = false;     ///< The client has closed its side.
  bool last_answer_ = false; ///< The answer at hand is complete.
  bool continued_ = false;   ///< "100 Continue" was sent for the request at hand.
  std::array<char, 16 << 10> chunk_{};
  std::string input_; ///< Read, not parsed.
  std::optional<parser_type> parser_;
  std::shared_ptr<http_answer> answer_; ///< Of the request that is being answered.
  std::string output_;                  ///< To be written next.
  std::string sending_;                 ///< Being written.
  std::size_t sending_of_answer_ = 0;
  std::size_t output_of_answer_ = 0;
  clock::time_point began_{};      ///< The request that is being read, or the last word.
  clock::time_point last_{};       ///< Of anything that moved.
  clock::time_point last_write_{}; ///< Of anything that was written.
};

// -- reading --------------------------------------------------------------------------------------

template <class Stream>
void connection<Stream>::read() {
  if (reading_ || leaving_ || state_ == state::closed || input_.size() >= most_ahead)
    return;
  reading_ = true;
  stream_.async_read_some(
    asio::buffer(chunk_),
    [self = this->shared_from_this()](const error_code& why, std::size_t bytes) {
      self->reading_ = false;
      if (self->state_ == state::closed)
        return;
      if (why)
        return self->lose();
      self->last_ = clock::now();
      if (self->state_ == state::open && !self->refused_) {
        self->input_.append(self->chunk_.data(), bytes);
        self->parse();
      }
      self->read();
    });
}

template <class Stream>
void connection<Stream>::parse() {
  while (!answer_ && !input_.empty() && state_ == state::open && !refused_) {
    if (!parser_) {
      parser_.emplace();
      parser_->eager(true);
      parser_->body_limit(place_.options->limits.body_bytes);
      parser_->header_limit(static_cast<std::uint32_t>(place_.options->limits.header_bytes));
      began_ = clock::now();
      continued_ = false;
    }
    error_code why;
    const auto used = parser_->put(asio::const_buffer(input_.data(), input_.size()), why);
    input_.erase(0, used);
    if (why && why != http::error::need_more) {
      const auto [status, what] = describe_parse_error(why, place_.options->limits);
      return refuse(status, what);
    }
    if (parser_->is_done()) {
      answer_request();
      continue;
    }
    if (parser_->is_header_done() && !continued_
        && boost::beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      continued_ = true;
      output_ += "HTTP/1.1 100 Continue\r\n\r\n";
      write();
    }
    if (why == http::error::need_more || used == 0)
      return;
  }
}

template <class Stream>
void connection<Stream>::answer_request() {
  auto message = parser_->release();
  const http_answer::framing how{message.version() >= 11,
                                 message.method() == http::verb::head,
                                 message.keep_alive() && !draining_};
  parser_.reset();
  const auto text = [&](http::field name) {
    const auto value = message[name];
    return std::string(value.data(), value.size());
  };
  http_request asked;
  asked.id = request_id_of(std::string(message["X-Request-Id"]));
  asked.method = std::string(message.method_string());
  const std::string target(message.target());
  const auto mark = std::min(target.find('?'), target.size());
  asked.path = target.substr(0, mark);
  asked.query = target.substr(std::min(mark + 1, target.size()));
  asked.host = text(http::field::host);
  asked.origin = text(http::field::origin);
  asked.authorization = text(http::field::authorization);
  asked.peer = peer_;
  asked.body = std::move(message.body());
  // Answers may outlive the connection and come from other threads: they hold the loop alone.
  answer_ = std::make_shared<http_answer>(std::move(asked),
                                          how,
                                          place_.options->limits.stream_buffer_bytes,
                                          [loop = place_.loop, here = this->weak_from_this()] {
                                            asio::post(*loop, [here] {
                                              if (auto self = here.lock())
                                                self->flush();
                                            });
                                          });
  last_answer_ = false;
  last_write_ = clock::now();
  place_.options->on_request(answer_);
}

/// What came is no request that could be answered in the usual way: one answer, and the end.
template <class Stream>
void connection<Stream>::refuse(unsigned status, const std::string& what) {
  refused_ = true;
  parser_.reset();
  input_.clear();
  const auto body = place_.options->describe_error(status, what);
  log::debug("http {} from {}: {}", status, peer_, what);
  output_ += fmt::format("HTTP/1.1 {} {}\r\nServer: troupe\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                         status,
                         reason_phrase(status),
                         body.size(),
                         body);
  write();
}

template <class Stream>
void connection<Stream>::turn_away(const std::string& why) {
  began_ = last_ = clock::now();
  if constexpr (encrypted) {
    cut(); // Not worth a handshake.
  } else {
    refuse(503, why);
    read();
  }
}

/// The client has closed its side, or the connection broke. What is complete still goes out.
template <class Stream>
void connection<Stream>::lose() {
  leaving_ = true;
  if (state_ == state::open && (writing_ || last_answer_) && (!answer_ || last_answer_))
    return;
  cut();
}

// -- writing --------------------------------------------------------------------------------------

template <class Stream>
void connection<Stream>::flush() {
  if (!answer_ || state_ != state::open)
    return;
  auto [bytes, complete, is_cut] = answer_->take();
  if (is_cut) {
    log::debug("http {} from {} is cut off", answer_->request().id, peer_);
    return cut();
  }
  if (complete && !std::exchange(last_answer_, true))
    place_.options->on_answered(answer_->request(), answer_->status());
  output_of_answer_ += bytes.size();
  output_ += bytes;
  write();
}

template <class Stream>
void connection<Stream>::write() {
  if (writing_ || state_ != state::open)
    return;
  if (output_.empty()) {
    if (refused_)
      say_goodbye();
    else if (answer_ && last_answer_)
      end_answer();
    return;
  }
  writing_ = true;
  last_ = clock::now();
  sending_ = std::exchange(output_, {});
  sending_of_answer_ = std::exchange(output_of_answer_, 0);
  asio::async_write(stream_,
                    asio::buffer(sending_),
                    [self = this->shared_from_this()](const error_code& why, std::size_t) {
                      self->writing_ = false;
                      if (self->state_ == state::closed)
                        return;
                      if (why)
                        return self->cut();
                      self->last_ = self->last_write_ = clock::now();
                      if (self->answer_)
                        self->answer_->sent(self->sending_of_answer_);
                      self->write();
                    });
}

template <class Stream>
void connection<Stream>::end_answer() {
  const bool stays = answer_->keeps_alive() && !draining_ && !leaving_;
  answer_->detach();
  answer_.reset();
  last_answer_ = false;
  began_ = clock::now();
  if (!stays)
    return say_goodbye();
  parse();
  read();
}

/// Closes our side, and waits a little for the client to close its own.
template <class Stream>
void connection<Stream>::say_goodbye() {
  state_ = state::lingering;
  began_ = clock::now();
  if (leaving_)
    return cut();
  if constexpr (encrypted) {
    stream_.async_shutdown([self = this->shared_from_this()](const error_code&) { self->cut(); });
  } else {
    error_code ignored;
    socket().shutdown(tcp::socket::shutdown_send, ignored);
    read();
  }
}

// -- the end --------------------------------------------------------------------------------------

template <class Stream>
void connection<Stream>::cut() {
  if (state_ == state::closed)
    return;
  state_ = state::closed;
  error_code ignored;
  socket().close(ignored);
  if (answer_) {
    if (!last_answer_)
      place_.options->on_answered(answer_->request(), 0);
    answer_->detach();
    answer_.reset();
  }
  const auto self = this->shared_from_this(); // on_end lets go of it
  place_.on_end(this);
}

template <class Stream>
void connection<Stream>::drain() {
  draining_ = true;
  if (!answer_ && !writing_)
    cut();
}

template <class Stream>
void connection<Stream>::look(clock::time_point now) {
  const auto& limits = place_.options->limits;
  if (state_ == state::lingering) {
    if (now - began_ > linger_time)
      cut();
  } else if (state_ == state::greeting) {
    if (now - began_ > limits.read)
      cut();
  } else if (writing_) {
    if (now - last_ > limits.idle) {
      log::debug("http client {} does not read", peer_);
      cut();
    }
  } else if (answer_) {
    if (now - last_write_ > limits.keep_alive && answer_->streams()) {
      last_write_ = now;
      answer_->send_comment(place_.options->describe_silence());
    }
  } else if (parser_) {
    if (now - began_ > limits.read)
      refuse(408,
             fmt::format("the request was not complete within {} ms (serve.read_ms)",
                         limits.read.count()));
  } else if (now - last_ > limits.idle) {
    cut();
  }
}

} // namespace

std::shared_ptr<http_connection>
make_http_connection(const connection_place& place, int socket, std::string peer) {
  tcp::socket taken(*place.loop);
  error_code why;
  taken.assign(tcp::v4(), socket, why); // The family matters to none of what follows.
  if (place.tls)
    return std::make_shared<connection<asio::ssl::stream<tcp::socket>>>(
      place, std::move(peer), std::move(taken), *place.tls);
  return std::make_shared<connection<tcp::socket>>(place, std::move(peer), std::move(taken));
}

} // namespace troupe::actors::serve
