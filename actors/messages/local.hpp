#pragma once
// Within a process: what a rank tells itself, what its reactor tells it.

#include "actors/caf.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

/// rank -> itself, between two units, so that fences and questions get their turn.
struct unit_due {
  step_id step{};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, unit_due& x) {
  return f(caf::meta::type_name("unit_due"), x.step);
}

/// rank -> itself after the last unit.
struct group_leave {
  step_id step{};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, group_leave& x) {
  return f(caf::meta::type_name("group_leave"), x.step);
}

/// rank -> itself: send the boundary or the output.
struct pass_finish {
  step_id step{};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pass_finish& x) {
  return f(caf::meta::type_name("pass_finish"), x.step);
}

/// reactor -> rank: every neighbour of the epoch was heard.
struct peers_heard {
  epoch_id epoch{};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, peers_heard& x) {
  return f(caf::meta::type_name("peers_heard"), x.epoch);
}

/// reactor -> rank or conductor: the wires to a peer are gone.
struct peer_down {
  std::uint32_t peer = 0; ///< transport::peer_key.
  std::uint8_t code = 0;  ///< troupe::errc.
  std::string what;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, peer_down& x) {
  return f(caf::meta::type_name("peer_down"), x.peer, x.code, x.what);
}

/// A clock's tick: deadlines are looked at.
struct tick {
  std::uint8_t unused = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, tick& x) {
  return f(caf::meta::type_name("tick"), x.unused);
}

} // namespace troupe::actors
