#include "tests/support/http_socket.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace troupe::tests {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

bool readable(int socket, clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - clock::now()).count();
  pollfd wanted{socket, POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(std::max<long>(left, 0))) > 0;
}

std::string lower(std::string text) {
  for (auto& c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

} // namespace

http_socket::http_socket(std::uint16_t port, int receive_bytes)
  : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  BOOST_REQUIRE(socket_ >= 0);
  if (receive_bytes > 0)
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(socket_, reinterpret_cast<sockaddr*>(&where), sizeof where);
  BOOST_REQUIRE_MESSAGE(connected == 0, "nobody listens on port " << port);
}

http_socket::~http_socket() {
  close();
}

http_socket::http_socket(http_socket&& other) noexcept {
  *this = std::move(other);
}

http_socket& http_socket::operator=(http_socket&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(pending_, other.pending_);
  std::swap(events_, other.events_);
  std::swap(chunked_, other.chunked_);
  std::swap(ended_, other.ended_);
  return *this;
}

bool http_socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void http_socket::ask(std::string_view path,
                      std::string_view body,
                      const std::vector<std::string>& headers) {
  std::string text = body.empty() ? "GET " : "POST ";
  text += std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& one : headers)
    text += one + "\r\n";
  if (!body.empty())
    text +=
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  send(text + "\r\n" + std::string(body));
}

bool http_socket::fill(clock::time_point until) {
  char chunk[16 << 10];
  if (socket_ < 0 || !readable(socket_, until))
    return false;
  const auto got = ::recv(socket_, chunk, sizeof chunk, 0);
  if (got <= 0)
    return false;
  pending_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> http_socket::line(clock::time_point until) {
  std::size_t end = 0;
  while ((end = pending_.find("\r\n")) == std::string::npos)
    if (!fill(until))
      return std::nullopt;
  auto found = pending_.substr(0, end);
  pending_.erase(0, end + 2);
  return found;
}

std::optional<http_reply> http_socket::receive_header(milliseconds deadline) {
  const auto until = clock::now() + deadline;
  http_reply found;
  do {
    const auto first = line(until);
    if (!first || first->size() < 12)
      return std::nullopt;
    found = {};
    found.status = static_cast<unsigned>(std::stoul(first->substr(9, 3)));
    for (;;) {
      const auto one = line(until);
      if (!one)
        return std::nullopt;
      if (one->empty())
        break;
      const auto colon = one->find(':');
      BOOST_REQUIRE_MESSAGE(colon != std::string::npos, *one);
      found.headers[lower(one->substr(0, colon))] = one->substr(colon + 2);
    }
  } while (found.status == 100);
  chunked_ = found.headers["transfer-encoding"] == "chunked";
  events_.clear();
  ended_ = false;
  return found;
}

/// More of a stream's body; false at its end, or when nothing came in time.
bool http_socket::take_chunk(clock::time_point until) {
  if (ended_)
    return false;
  if (!chunked_) {
    if (pending_.empty() && !fill(until))
      return false;
    events_ += std::exchange(pending_, {});
    return true;
  }
  const auto size = line(until);
  if (!size)
    return false;
  const auto bytes = std::stoul(*size, nullptr, 16);
  while (pending_.size() < bytes + 2)
    if (!fill(until))
      return false;
  events_ += pending_.substr(0, bytes);
  pending_.erase(0, bytes + 2);
  ended_ = bytes == 0;
  return !ended_;
}

std::optional<http_reply> http_socket::receive(milliseconds deadline) {
  const auto until = clock::now() + deadline;
  auto found = receive_header(deadline);
  if (!found)
    return std::nullopt;
  if (chunked_) {
    while (take_chunk(until)) {
    }
    if (!ended_)
      return std::nullopt;
    found->body = std::exchange(events_, {});
    return found;
  }
  const auto length = found->headers.find("content-length");
  const auto bytes = length == found->headers.end() ? 0 : std::stoul(length->second);
  while (pending_.size() < bytes)
    if (!fill(until))
      return std::nullopt;
  found->body = pending_.substr(0, bytes);
  pending_.erase(0, bytes);
  return found;
}

std::optional<std::string> http_socket::next_event(milliseconds deadline) {
  const auto until = clock::now() + deadline;
  std::size_t end = 0;
  while ((end = events_.find("\n\n")) == std::string::npos)
    if (!take_chunk(until))
      return std::nullopt;
  auto event = events_.substr(0, end);
  events_.erase(0, end + 2);
  if (event.starts_with(":"))
    return event;
  BOOST_REQUIRE_MESSAGE(event.starts_with("data: "), event);
  return event.substr(6);
}

std::vector<std::string> http_socket::all_events(milliseconds deadline) {
  const auto until = clock::now() + deadline;
  std::vector<std::string> found;
  while (auto event = next_event(std::chrono::duration_cast<milliseconds>(until - clock::now())))
    if (!event->starts_with(":"))
      found.push_back(std::move(*event));
  return found;
}

bool http_socket::is_closed(milliseconds deadline) {
  const auto until = clock::now() + deadline;
  while (clock::now() < until && readable(socket_, until)) {
    char chunk[4096];
    if (::recv(socket_, chunk, sizeof chunk, 0) <= 0)
      return true;
  }
  return false;
}

void http_socket::close(bool reset) {
  if (socket_ < 0)
    return;
  if (reset) {
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  ::close(std::exchange(socket_, -1));
}

http_reply ask_http(std::uint16_t port,
                    std::string_view path,
                    std::string_view body,
                    const std::vector<std::string>& headers) {
  http_socket connection(port);
  connection.ask(path, body, headers);
  const auto found = connection.receive(milliseconds{30'000});
  BOOST_REQUIRE_MESSAGE(found, "no answer to " << path);
  return *found;
}

} // namespace troupe::tests
