#include <utility> // before asio 1.74, which forgets it

#include "actors/serve/http_server.hpp"

#include "actors/serve/http_connection.hpp"
#include "config/log.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <pthread.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace troupe::actors::serve {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds look_period{100};
// When no descriptor is left, somebody else has to close one first.
constexpr milliseconds accept_pause{200};
// What the kernel may hold back for a client that does not read; it would take megabytes else.
constexpr int send_buffer_bytes = 256 << 10;

result<std::shared_ptr<asio::ssl::context>> make_tls(const http_options& options) {
  std::shared_ptr<asio::ssl::context> none;
  if (options.certificate.empty())
    return none;
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code why;
  made->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3
                      | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1,
                    why);
  made->use_certificate_chain_file(options.certificate.string(), why);
  if (why)
    return error{errc::invalid_config,
                 fmt::format("{}: {}", options.certificate.string(), why.message())};
  made->use_private_key_file(options.key.string(), asio::ssl::context::pem, why);
  if (why)
    return error{errc::invalid_config, fmt::format("{}: {}", options.key.string(), why.message())};
  return made;
}

std::string name_of(const tcp::endpoint& where) {
  return fmt::format("{} port {}", where.address().to_string(), where.port());
}

class server final : public http_server {
public:
  server(http_options options, std::shared_ptr<asio::ssl::context> tls)
    : options_(std::make_shared<const http_options>(std::move(options))), tls_(std::move(tls)) {}

  ~server() override { stop(milliseconds{0}); }

  result<void> listen();
  void run();

  std::uint16_t port() const override { return port_; }

  std::size_t connections() const override { return open_.load(std::memory_order_relaxed); }

  void stop(milliseconds grace) override;

private:
  void accept();
  void take(tcp::socket socket);
  void look();
  void drop(http_connection* which);

  std::shared_ptr<const http_options> options_;
  std::shared_ptr<asio::ssl::context> tls_;
  std::shared_ptr<asio::io_context> loop_ = std::make_shared<asio::io_context>(1);
  tcp::acceptor acceptor_{*loop_};
  asio::steady_timer clock_{*loop_};
  asio::steady_timer accept_clock_{*loop_};
  std::uint16_t port_ = 0;
  std::map<http_connection*, std::shared_ptr<http_connection>> connections_;
  std::atomic<std::size_t> open_{0};
  bool stopping_ = false;
  http_connection::clock::time_point give_up_{};
  std::thread thread_;
};

result<void> server::listen() {
  const auto& options = *options_;
  error_code why;
  tcp::resolver resolver(*loop_);
  const auto found = resolver.resolve(options.bind,
                                      std::to_string(options.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service,
                                      why);
  const auto fail = [&](std::string_view what) {
    return error{errc::io_error,
                 fmt::format("{} {} port {}: {}", what, options.bind, options.port, why.message())};
  };
  if (why || found.empty())
    return fail("cannot look up");
  const tcp::endpoint where = *found.begin();
  acceptor_.open(where.protocol(), why);
  if (!why)
    acceptor_.set_option(tcp::acceptor::reuse_address(true), why);
  if (!why)
    acceptor_.bind(where, why);
  if (!why)
    acceptor_.listen(asio::socket_base::max_listen_connections, why);
  if (why)
    return fail("cannot listen on");
  port_ = acceptor_.local_endpoint(why).port();
  return {};
}

void server::run() {
  accept();
  look();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "http");
    loop_->run();
  });
}

void server::accept() {
  acceptor_.async_accept([this](const error_code& why, tcp::socket socket) {
    if (stopping_ || why == asio::error::operation_aborted)
      return;
    if (!why) {
      take(std::move(socket));
      return accept();
    }
    log::warn("http accepts nobody for a moment: {}", why.message());
    accept_clock_.expires_after(accept_pause);
    accept_clock_.async_wait([this](const error_code& ended) {
      if (!ended && !stopping_)
        accept();
    });
  });
}

void server::take(tcp::socket socket) {
  error_code why;
  const auto peer = socket.remote_endpoint(why);
  if (why)
    return; // It has left already.
  socket.set_option(tcp::no_delay(true), why);
  socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), why);
  const int descriptor = socket.release(why);
  if (why)
    return;
  const connection_place place{
    loop_, tls_, options_, [this](http_connection* which) { drop(which); }};
  auto made = make_http_connection(place, descriptor, name_of(peer));
  const bool full = connections_.size() >= options_->limits.connections;
  connections_.emplace(made.get(), made);
  open_.store(connections_.size(), std::memory_order_relaxed);
  if (full)
    made->turn_away(fmt::format("{} connections are open already (serve.connections)",
                                options_->limits.connections));
  else
    made->start();
}

void server::drop(http_connection* which) {
  connections_.erase(which);
  open_.store(connections_.size(), std::memory_order_relaxed);
}

void server::look() {
  const auto now = http_connection::clock::now();
  std::vector<std::shared_ptr<http_connection>> all; // Connections end while they are looked at.
  all.reserve(connections_.size());
  for (const auto& [key, one] : connections_)
    all.push_back(one);
  for (const auto& one : all)
    if (stopping_ && now >= give_up_)
      one->cut();
    else
      one->look(now);
  if (stopping_ && connections_.empty())
    return; // Nothing is left to wait for: the loop ends by itself.
  clock_.expires_after(stopping_ ? look_period / 10 : look_period);
  clock_.async_wait([this](const error_code& ended) {
    if (!ended)
      look();
  });
}

void server::stop(milliseconds grace) {
  if (!thread_.joinable())
    return;
  asio::post(*loop_, [this, grace] {
    stopping_ = true;
    give_up_ = http_connection::clock::now() + grace;
    error_code ignored;
    acceptor_.close(ignored);
    accept_clock_.cancel(ignored);
    std::vector<std::shared_ptr<http_connection>> all;
    for (const auto& [key, one] : connections_)
      all.push_back(one);
    for (const auto& one : all)
      one->drain();
    clock_.cancel(ignored);
    look();
  });
  thread_.join();
}

} // namespace

result<std::unique_ptr<http_server>> http_server::start(http_options options) {
  auto tls = make_tls(options);
  if (!tls)
    return tls.error();
  auto made = std::make_unique<server>(std::move(options), std::move(*tls));
  if (auto bound = made->listen(); !bound)
    return bound.error();
  made->run();
  return std::unique_ptr<http_server>(std::move(made));
}

} // namespace troupe::actors::serve
