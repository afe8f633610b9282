#pragma once
// Everything that can happen to a rank.
//
//   empty ─▶ loading ─▶ loaded ─▶ joining ─▶ ready ──────────────▶ in_group ─▶ leaving ─┐
//               │         ▲                  ▲ │ └▶ awaiting_input ──┘                  │
//               ▼         │ fence            │ └────────────────────────────────────────┘
//             failed      └──────── fenced ◀─┴─ a pass failed, or a neighbour is gone
//
// Entering and leaving an execution group are rows of this table. There are no flags beside it.

#include "actors/phase_table.hpp"

namespace troupe::actors {

enum class rank_phase : std::uint8_t {
  empty,          ///< No shard.
  loading,        ///< Reads and packs its shard.
  loaded,         ///< Holds its shard (and state, if it had an epoch), belongs to no epoch; may get
                  ///< another shard.
  joining,        ///< Meets the neighbours of an epoch.
  ready,          ///< Between two passes.
  awaiting_input, ///< Knows the step; its rows come from the stage before.
  in_group,       ///< Runs its units.
  leaving,        ///< All units ran; publishes.
  fenced,         ///< Gave the epoch up and said so; waits for the director.
  failed,         ///< Could not load.
  stopped,
};

enum class rank_input : std::uint8_t {
  assignment,      ///< shard_assignment
  load_succeeded,  ///< the shard is there
  load_failed,     ///< it is not
  epoch_plan,      ///< epoch_plan
  peers_heard,     ///< every neighbour proved the token, and no state is on its way
  state_manifest,  ///< state_manifest
  state_page,      ///< state_page
  step_tokens,     ///< step_tokens
  step_rows,       ///< step_rows
  rows_again,      ///< rows_again
  slots_released,  ///< slots_released
  partition_input, ///< partition_input
  unit_due,        ///< unit_due
  group_leave,     ///< group_leave
  pass_finish,     ///< pass_finish
  pass_failed,     ///< an error within a pass
  peer_down,       ///< peer_down
  fence,           ///< fence
  stop,            ///< node_stop
};

using rank_table = phase_table<rank_phase, 11, rank_input, 19>;

// clang-format off
inline constexpr rank_table rank_phases = [] {
  using enum rank_phase;
  constexpr auto hold = verdict::hold, drop = verdict::drop, no = verdict::refuse;
  return rank_table{{{
    //                     assignment load_ok  load_bad plan     heard  manifest page      tokens    rows            again  released  partition_input  due       leave    finish pass_failed down    fence   stop
    /* empty          */ {{loading,   no,      no,      no,      drop,  drop,    drop,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  no,         drop,   empty,  stopped}},
    /* loading        */ {{hold,      loaded,  failed,  hold,    drop,  drop,    drop,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  no,         drop,   hold,   hold   }},
    /* loaded         */ {{loading,   no,      no,      joining, drop,  hold,    hold,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  no,         drop,   loaded, stopped}},
    /* joining        */ {{no,        no,      no,      no,      ready, joining, joining,  hold,     hold,           hold,  hold,     hold,            drop,     drop,    drop,  fenced,     fenced, loaded, stopped}},
    /* ready          */ {{no,        no,      no,      no,      drop,  drop,    drop,     in_group, awaiting_input, ready, ready,    hold,            drop,     drop,    drop,  fenced,     fenced, loaded, stopped}},
    /* awaiting_input */ {{no,        no,      no,      no,      drop,  drop,    drop,     hold,     hold,           hold,  hold,     in_group,        drop,     drop,    drop,  fenced,     fenced, loaded, stopped}},
    /* in_group       */ {{no,        no,      no,      no,      drop,  drop,    drop,     hold,     hold,           hold,  hold,     hold,            in_group, leaving, drop,  fenced,     fenced, loaded, stopped}},
    /* leaving        */ {{no,        no,      no,      no,      drop,  drop,    drop,     hold,     hold,           hold,  hold,     hold,            drop,     drop,    ready, fenced,     fenced, loaded, stopped}},
    /* fenced         */ {{no,        no,      no,      hold,    drop,  drop,    drop,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  drop,       drop,   loaded, stopped}},
    /* failed         */ {{loading,   no,      no,      no,      drop,  drop,    drop,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  no,         drop,   failed, stopped}},
    /* stopped        */ {{drop,      drop,    drop,    drop,    drop,  drop,    drop,     drop,     drop,           drop,  drop,     drop,            drop,     drop,    drop,  drop,       drop,   drop,   drop   }},
  }},
  {"empty", "loading", "loaded", "joining", "ready", "awaiting_input", "in_group", "leaving", "fenced", "failed", "stopped"},
  {"assignment", "load_succeeded", "load_failed", "epoch_plan", "peers_heard", "state_manifest", "state_page", "step_tokens", "step_rows", "rows_again", "slots_released",
   "partition_input", "unit_due", "group_leave", "pass_finish", "pass_failed", "peer_down", "fence", "stop"}};
}();
// clang-format on

static_assert(rank_phases.all_reachable(), "every phase of a rank can be reached");
static_assert(rank_phases.all_have_a_way_out(rank_phase::stopped), "every phase has a way out");
static_assert(rank_phases.all_holds_end(), "nothing is held for ever");

/// Whether an input of another epoch is kept for one whose plan is on its way: between epochs, what
/// a rank that joins would hold. Neighbours in its process need not hear it before they send.
constexpr bool waits_for_plan(rank_phase phase, rank_input input) {
  return phase == rank_phase::loaded
         && rank_phases.at(rank_phase::joining, input).what == verdict::hold;
}

} // namespace troupe::actors
