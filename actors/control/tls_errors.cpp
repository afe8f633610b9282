#include "actors/control/tls_errors.hpp"

#include "config/check.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace troupe::actors {

namespace {

// Called at the end of a handshake's call, with its result, and at each alert: after the error was
// noted, before the caller looks.
void forget_errors(const SSL*, int where, int result) {
  const bool handshake_failed = (where & SSL_CB_EXIT) != 0 && result < 0;
  const bool alert = (where & SSL_CB_ALERT) != 0;
  if (handshake_failed || alert)
    ERR_clear_error();
}

// OpenSSL calls this for each SSL_CTX that it makes: the only way to those that CAF asks for.
void adjust_context(void* context, void*, CRYPTO_EX_DATA*, int, long, void*) {
  auto* made = static_cast<SSL_CTX*>(context);
  SSL_CTX_set_options(made, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_info_callback(made, forget_errors);
}

} // namespace

void keep_tls_errors_apart() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, adjust_context, nullptr, nullptr);
  check(index >= 0, "OpenSSL takes a callback for new contexts");
}

} // namespace troupe::actors
