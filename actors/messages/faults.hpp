#pragma once
// The control road of faults that are asked for while a cluster serves (`troupe inject`).

#include "actors/caf.hpp"

#include <cstdint>
#include <string>

namespace troupe::actors {

/// client -> gateway -> director -> nodes -> ranks, director -> conductor: one more [[fault]];
/// troupe::fault_settings with its real as bits. Answered to the client by fault_receipt or an
/// error that names the field.
struct fault_order {
  std::string what;
  std::string where;
  std::string when;
  std::uint64_t times = 1;
  std::uint64_t steps = 0;
  std::uint64_t ms = 0;
  real32 factor = 1.0f;
  std::string length;
  std::uint64_t seed = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, fault_order& x) {
  return f(caf::meta::type_name("fault_order"),
           x.what,
           x.where,
           x.when,
           x.times,
           x.steps,
           x.ms,
           x.factor,
           x.length,
           x.seed);
}

/// director -> client: where it will happen, and from when on its moment is looked for.
struct fault_receipt {
  std::string what; ///< For people.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, fault_receipt& x) {
  return f(caf::meta::type_name("fault_receipt"), x.what);
}

} // namespace troupe::actors
