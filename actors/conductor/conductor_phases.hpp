#pragma once
// Everything that can happen to the conductor.
//
//   waiting ─▶ joining ─▶ serving ─▶ draining ─▶ stopped
//      ▲          │          │
//      └──────────┴──────────┘  the epoch ended

#include "actors/phase_table.hpp"

namespace troupe::actors {

enum class conductor_phase : std::uint8_t {
  waiting,  ///< No epoch: requests are refused with the reason.
  joining,  ///< Meets the ranks of an epoch.
  serving,  ///< Plans steps and publishes tokens.
  draining, ///< Lets running requests end; takes no new ones.
  stopped,
};

enum class conductor_input : std::uint8_t {
  epoch_plan,  ///< epoch_plan
  peers_heard, ///< every rank proved the token, and said what it holds where that is asked for
  state_held,  ///< state_held
  request,     ///< generate_request
  step_output, ///< step_output
  step_late,   ///< the oldest step passed its deadline
  peer_down,   ///< peer_down
  fence,       ///< fence
  stop,        ///< node_stop
  drained,     ///< nothing runs any more, or the drain's deadline passed
};

using conductor_table = phase_table<conductor_phase, 5, conductor_input, 10>;

// clang-format off
inline constexpr conductor_table conductor_phases = [] {
  using enum conductor_phase;
  constexpr auto drop = verdict::drop, no = verdict::refuse;
  return conductor_table{{{
    //             plan     heard    held     request  output    late     down     fence    stop      drained
    /* waiting  */ {{joining, drop,    drop,    no,      drop,     drop,    drop,    waiting, stopped,  drop   }},
    /* joining  */ {{no,      serving, joining, no,      drop,     drop,    waiting, waiting, stopped,  drop   }},
    /* serving  */ {{no,      drop,    drop,    serving, serving,  waiting, waiting, waiting, draining, drop   }},
    /* draining */ {{no,      drop,    drop,    no,      draining, stopped, stopped, stopped, drop,     stopped}},
    /* stopped  */ {{drop,    drop,    drop,    no,      drop,     drop,    drop,    drop,    drop,     drop   }},
  }},
  {"waiting", "joining", "serving", "draining", "stopped"},
  {"epoch_plan", "peers_heard", "state_held", "request", "step_output", "step_late", "peer_down", "fence", "stop", "drained"}};
}();
// clang-format on

static_assert(conductor_phases.all_reachable(), "every phase of the conductor can be reached");
static_assert(conductor_phases.all_have_a_way_out(conductor_phase::stopped), "and left");
static_assert(conductor_phases.all_holds_end(), "nothing is held for ever");

} // namespace troupe::actors
