#include "actors/serve/http_answer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace troupe::actors::serve {

std::string_view reason_phrase(unsigned status) noexcept {
  switch (status) {
  case 200: return "OK";
  case 204: return "No Content";
  case 400: return "Bad Request";
  case 401: return "Unauthorized";
  case 403: return "Forbidden";
  case 404: return "Not Found";
  case 405: return "Method Not Allowed";
  case 408: return "Request Timeout";
  case 413: return "Content Too Large";
  case 429: return "Too Many Requests";
  case 431: return "Request Header Fields Too Large";
  case 500: return "Internal Server Error";
  case 501: return "Not Implemented";
  case 503: return "Service Unavailable";
  case 504: return "Gateway Timeout";
  default: return "Unknown";
  }
}

http_answer::http_answer(http_request asked,
                         framing how,
                         std::size_t most_unsent,
                         std::function<void()> wake)
  : http_exchange(std::move(asked)), how_(how), most_unsent_(most_unsent), wake_(std::move(wake)) {}

void http_answer::add_headers(std::vector<http_header> headers) {
  const std::lock_guard lock(mutex_);
  headers_.insert(headers_.end(), headers.begin(), headers.end());
}

void http_answer::respond(http_response answer) {
  std::unique_lock lock(mutex_);
  if (gone_ || complete_ || streams_)
    return;
  append_header(answer.status,
                answer.content_type,
                answer.headers,
                fmt::format("Content-Length: {}\r\n", answer.body.size()));
  if (!how_.head_only)
    append(answer.body);
  end(false, lock);
}

void http_answer::begin_events() {
  std::unique_lock lock(mutex_);
  if (gone_ || complete_ || streams_)
    return;
  streams_ = true;
  // Proxies keep small pieces back unless they are told not to.
  append_header(200,
                "text/event-stream; charset=utf-8",
                {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
                how_.chunked ? "Transfer-Encoding: chunked\r\n" : "");
  if (how_.head_only)
    end(false, lock);
  else
    call(lock);
}

void http_answer::send_event(std::string_view data) {
  std::unique_lock lock(mutex_);
  if (gone_ || complete_ || !streams_)
    return;
  append_part(fmt::format("data: {}\n\n", data));
  if (unsent_ > most_unsent_)
    end(true, lock);
  else
    call(lock);
}

void http_answer::send_comment(std::string_view text) {
  std::unique_lock lock(mutex_);
  if (gone_ || complete_ || !streams_ || unsent_ > 0)
    return;
  append_part(fmt::format(": {}\n\n", text));
  call(lock);
}

void http_answer::finish() {
  std::unique_lock lock(mutex_);
  if (gone_ || complete_ || !streams_)
    return;
  if (how_.chunked)
    append("0\r\n\r\n");
  end(false, lock);
}

void http_answer::abandon() {
  std::unique_lock lock(mutex_);
  if (!gone_ && !complete_)
    end(true, lock);
}

void http_answer::on_gone(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (complete_ && !cut_)
      return;
    if (!gone_) {
      gone_handler_ = std::move(then);
      return;
    }
  }
  then();
}

bool http_answer::streams() const {
  const std::lock_guard lock(mutex_);
  return streams_;
}

http_answer::output http_answer::take() {
  const std::lock_guard lock(mutex_);
  called_ = false;
  return {std::exchange(pending_, {}), complete_, cut_};
}

void http_answer::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ -= bytes;
}

void http_answer::detach() {
  std::function<void()> then;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    wake_ = nullptr;
    pending_.clear();
    if (!complete_ || cut_)
      then = std::move(gone_handler_);
    gone_handler_ = nullptr;
  }
  if (then)
    then();
}

bool http_answer::keeps_alive() const {
  const std::lock_guard lock(mutex_);
  return how_.keep_alive && !cut_ && (how_.chunked || !streams_);
}

unsigned http_answer::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void http_answer::append_header(unsigned status,
                                std::string_view content_type,
                                const std::vector<http_header>& headers,
                                std::string_view length) {
  status_ = status;
  const bool keeps = how_.keep_alive && (how_.chunked || !streams_);
  auto text =
    fmt::format("HTTP/1.1 {} {}\r\nServer: troupe\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n"
                "Connection: {}\r\nX-Request-Id: {}\r\nX-Content-Type-Options: nosniff\r\n",
                status,
                reason_phrase(status),
                fmt::gmtime(std::time(nullptr)),
                keeps ? "keep-alive" : "close",
                request().id);
  if (!content_type.empty())
    text += fmt::format("Content-Type: {}\r\n", content_type);
  for (const auto* list : {&std::as_const(headers_), &headers})
    for (const auto& [name, value] : *list)
      text += fmt::format("{}: {}\r\n", name, value);
  append(text);
  append(length);
  append("\r\n");
}

void http_answer::append(std::string_view bytes) {
  pending_ += bytes;
  unsent_ += bytes.size();
}

void http_answer::append_part(std::string_view bytes) {
  append(how_.chunked ? fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes) : std::string(bytes));
}

void http_answer::end(bool how_cut, std::unique_lock<std::mutex>& lock) {
  complete_ = true;
  cut_ = how_cut;
  call(lock);
}

/// One call a take() is enough. Without the lock: whoever is woken may take at once.
void http_answer::call(std::unique_lock<std::mutex>& lock) {
  if (called_ || !wake_)
    return;
  called_ = true;
  const auto wake = wake_;
  lock.unlock();
  wake();
}

} // namespace troupe::actors::serve
