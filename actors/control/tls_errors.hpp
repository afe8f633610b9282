#pragma once

// Keeps the TLS connections of one process apart.
//
// OpenSSL notes errors in a queue for each thread, and SSL_get_error() takes whatever stands in it
// for an error of the connection at hand; callers are to empty the queue before each operation. CAF
// 0.17.6 serves all connections on one thread and never empties it. So one peer that hangs up
// without saying goodbye (an error since OpenSSL 3), or fails its handshake, ends the connections
// of all others.

namespace troupe::actors {

/// From now on every TLS context of this process takes the end of a connection for an end, not for
/// an error, and leaves the queue empty when a handshake or a connection fails. Callers that want
/// to know why a handshake of theirs failed have to ask before. Any thread, any number of times.
void keep_tls_errors_apart();

} // namespace troupe::actors
