#include "actors/control/tls_handshake.hpp"

#include "actors/host/host_network.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <memory>
#include <poll.h>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

using context_ptr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using session_ptr = std::unique_ptr<SSL, decltype(&SSL_free)>;

// Waits until the socket is ready for what OpenSSL wants of it; false when time is over.
bool wait_for(const open_socket& socket, int wanted, clock::time_point give_up) {
  const auto left = std::chrono::duration_cast<milliseconds>(give_up - clock::now()).count();
  const short events = wanted == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  pollfd ready{socket.get(), events, 0};
  return left > 0 && ::poll(&ready, 1, static_cast<int>(left)) > 0;
}

enum class verdict { done, failed, too_late };

// Repeats a call of OpenSSL's that does not block until it is through.
template <class Call>
verdict drive(SSL* session, const open_socket& socket, clock::time_point give_up, Call call) {
  while (true) {
    ERR_clear_error();
    const int done = call();
    if (done > 0)
      return verdict::done;
    const int wanted = SSL_get_error(session, done);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE)
      return verdict::failed;
    if (!wait_for(socket, wanted, give_up))
      return verdict::too_late;
  }
}

// A connection of our own context's: the reason of a failure is still to be had.
std::string reason_of(SSL* session) {
  const auto trust = SSL_get_verify_result(session);
  const auto code = ERR_peek_last_error();
  const char* text = ERR_reason_error_string(code);
  std::string reason = text != nullptr ? text : "it hung up";
  ERR_clear_error();
  if (trust != X509_V_OK)
    return fmt::format("it does not hold the secret or certificates of this cluster file ({})",
                       X509_verify_cert_error_string(trust));
  if (reason == "wrong version number" || reason == "http request"
      || reason == "record layer failure")
    return fmt::format("it does not speak TLS: it is another program, or a node without the secret "
                       "or certificates that this cluster file names ({})",
                       reason);
  return fmt::format("it does not accept the secret or certificates of this cluster file ({})",
                     reason);
}

result<context_ptr> make_context(const credentials& shown) {
  context_ptr made(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (!made || SSL_CTX_use_certificate_chain_file(made.get(), shown.certificate().c_str()) != 1
      || SSL_CTX_use_PrivateKey_file(made.get(), shown.key().c_str(), SSL_FILETYPE_PEM) != 1
      || SSL_CTX_load_verify_locations(made.get(), shown.authority().c_str(), nullptr) != 1)
    return error{errc::io_error, "OpenSSL cannot use the cluster's credentials any more"};
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_info_callback(made.get(), nullptr); // tls_errors.hpp: here, reasons are wanted.
  return made;
}

} // namespace

result<void> shake_hands(const std::string& host,
                         std::uint16_t port,
                         const credentials& shown,
                         milliseconds deadline) {
  const auto give_up = clock::now() + deadline;
  const auto socket = connect_to(host, port, deadline);
  if (!socket)
    return socket.error();
  const auto context = make_context(shown);
  if (!context)
    return context.error();
  const session_ptr session(SSL_new(context->get()), SSL_free);
  if (!session || SSL_set_fd(session.get(), socket->get()) != 1)
    return error{errc::io_error, "OpenSSL cannot make a session"};
  auto came = drive(session.get(), *socket, give_up, [&] { return SSL_connect(session.get()); });
  char first = 0;
  if (came == verdict::done)
    came =
      drive(session.get(), *socket, give_up, [&] { return SSL_peek(session.get(), &first, 1); });
  const auto where = name_endpoint(host, port);
  if (came == verdict::too_late)
    return error{errc::timed_out,
                 fmt::format("{} took the connection but did not answer within {} ms",
                             where,
                             deadline.count())};
  if (came == verdict::failed)
    return error{errc::unauthorised, fmt::format("{}: {}", where, reason_of(session.get()))};
  SSL_shutdown(session.get()); // A goodbye, so that the other side sees an end and no error.
  ERR_clear_error();
  return {};
}

} // namespace troupe::actors
