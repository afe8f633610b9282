#pragma once

#include "actors/control/security.hpp"
#include "config/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe::actors {

/// Finds out whether the door at host:port lets these credentials in: a handshake with a deadline,
/// closed again once the other side has said its first word, which it does only to members. Errors:
/// those of connect_to(); timed_out; unauthorised with the reason: one side does not trust the
/// other, or the other side does not speak TLS.
result<void> shake_hands(const std::string& host,
                         std::uint16_t port,
                         const credentials& shown,
                         std::chrono::milliseconds deadline);

} // namespace troupe::actors
