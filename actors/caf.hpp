#pragma once
// What Troupe uses of the actor framework, and the few words that differ between its versions. This
// text is for CAF 0.17.6 (Debian 12, Ubuntu 22.04 and 24.04); with 0.18 `reacts_to`, `replies_to`,
// `inspect` and the signature of `enqueue` change, and they change here, in messages.hpp and in
// reactor.hpp.
//
// Traps of 0.17.6 that this house steers around:
// - no float or double in a message that may leave the process (an infinity hangs the I/O thread):
//   `real32` carries the bits;
// - no detached actor (their threads hang at exit once a handle left the process);
// - no request timeouts on hot paths (their timers are never cancelled).

#include <caf/actor_config.hpp>
#include <caf/actor_proxy.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/all.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <bit>
#include <cstdint>

namespace troupe::actors {

using caf::reacts_to;

/// A float as its bits, the only form in which it may travel.
struct real32 {
  std::uint32_t bits = 0;

  real32() = default;

  real32(float value) : bits(std::bit_cast<std::uint32_t>(value)) {}

  operator float() const { return std::bit_cast<float>(bits); }
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, real32& x) {
  return f(x.bits);
}

} // namespace troupe::actors
