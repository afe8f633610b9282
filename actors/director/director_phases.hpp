#pragma once
// Everything that can happen to the director.
//
//   gathering ─▶ loading ─▶ linking ─▶ serving ─▶ stopping ─▶ stopped
//       ▲           │          │          │
//       └───────────┴──────────┴──────────┘  a node or an epoch was lost
//                   └─────────────────────┘  another plan is ready
//
// What cannot be mended from here (a shard does not load, a node is missing when the deadline for
// joining passes) leads to failed, and from there to the end of every process, with the reason.

#include "actors/phase_table.hpp"

namespace troupe::actors {

enum class director_phase : std::uint8_t {
  gathering, ///< Waits for nodes.
  loading,   ///< Every node is here; ranks load their shards.
  linking,   ///< Every shard is loaded; ranks meet their neighbours in a new epoch.
  serving,   ///< The conductor plans steps.
  failed,    ///< Tells every process the reason and ends it.
  stopping,  ///< The conductor drains, then the nodes end.
  stopped,
};

enum class director_input : std::uint8_t {
  hello,       ///< node_hello that was accepted
  all_here,    ///< every node of the file has joined
  rank_loaded, ///< rank_loaded
  all_loaded,  ///< every rank of the plan is loaded
  rank_joined, ///< rank_joined
  all_joined,  ///< every rank and the conductor are connected
  hopeless,    ///< a shard does not load, digests differ, or the head's own rank is stuck
  epoch_lost,  ///< rank_fault within an epoch
  node_lost,   ///< a node's process is gone or silent
  replan,      ///< another plan is ready: nodes have come, or are to leave
  late,        ///< the phase's deadline passed
  stop,        ///< cluster_stop
  all_ended,   ///< every node has ended
};

using director_table = phase_table<director_phase, 7, director_input, 13>;

// clang-format off
inline constexpr director_table director_phases = [] {
  using enum director_phase;
  constexpr auto drop = verdict::drop, no = verdict::refuse;
  return director_table{{{
    //                hello      all_here  loaded      all_loaded  joined    all_joined  hopeless   epoch_lost  node_lost   replan    late       stop       ended
    /* gathering */ {{gathering, loading,  gathering,  drop,       drop,     drop,       failed,    drop,       gathering,  drop,     failed,    stopping,  drop   }},
    /* loading   */ {{no,        drop,     loading,    linking,    drop,     drop,       failed,    drop,       gathering,  drop,     failed,    stopping,  drop   }},
    /* linking   */ {{no,        drop,     linking,    drop,       linking,  serving,    failed,    gathering,  gathering,  drop,     gathering, stopping,  drop   }},
    /* serving   */ {{serving,   drop,     serving,    drop,       drop,     drop,       failed,    gathering,  gathering,  loading,  drop,      stopping,  drop   }},
    /* failed    */ {{no,        drop,     drop,       drop,       drop,     drop,       drop,      drop,       failed,     drop,     stopped,   drop,      stopped}},
    /* stopping  */ {{no,        drop,     drop,       drop,       drop,     drop,       drop,      drop,       stopping,   drop,     stopped,   drop,      stopped}},
    /* stopped   */ {{no,        drop,     drop,       drop,       drop,     drop,       drop,      drop,       drop,       drop,     drop,      drop,      drop   }},
  }},
  {"gathering", "loading", "linking", "serving", "failed", "stopping", "stopped"},
  {"hello", "all_here", "rank_loaded", "all_loaded", "rank_joined", "all_joined", "hopeless", "epoch_lost", "node_lost", "replan", "late", "stop", "all_ended"}};
}();
// clang-format on

static_assert(director_phases.all_reachable(), "every phase of the director can be reached");
static_assert(director_phases.all_have_a_way_out(director_phase::stopped), "and left");
static_assert(director_phases.all_holds_end(), "nothing is held for ever");

} // namespace troupe::actors
