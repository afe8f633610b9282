// What the director looks at from time to time: silence, standstill, deadlines.

#include "actors/director/director_state.hpp"
#include "actors/rank/rank_phases.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

using milliseconds = std::chrono::milliseconds;

namespace {

constexpr milliseconds tick_interval{100};
/// A director that was kept from looking for so long cannot tell who was silent meanwhile.
constexpr milliseconds absence{500};

} // namespace

/// A node that cannot do its work is told to end; whether it hears that does not matter. Without
/// the head's own node there is no cluster: every process ends, and whoever started it starts it
/// again.
void director_state::expel(std::size_t node, const std::string& reason) {
  if (node == settings_.head_index()) {
    step(director_input::hopeless, [&] { fail({errc::timed_out, reason}); });
    return;
  }
  const auto handle = *members_->at(node).handle;
  self_->send(handle, node_stop{reason, static_cast<std::uint8_t>(errc::timed_out)});
  node_gone(handle.address(), reason);
}

/// Liveness is progress: of nodes by their beats, of ranks by their counters.
void director_state::watch(clock::time_point now) {
  if (now - std::exchange(looked_at_, now) > absence) {
    members_->forgive(now);
    steps_since_ = now;
  }
  const milliseconds bound{settings_.deadlines.progress_ms};
  if (const auto silent = members_->silent(now, bound))
    expel(*silent,
          fmt::format("nothing was heard of it for {} ms (deadlines.progress_ms): it is frozen or "
                      "cut off",
                      bound.count()));
  if (phase_ == director_phase::serving) {
    if (const auto stuck = members_->stuck(now, bound))
      expel(stuck->node,
            fmt::format("{} has made no progress for {} ms (deadlines.progress_ms) while {} at "
                        "step {}",
                        name_rank(stuck->gauge.rank),
                        bound.count(),
                        rank_phases.name(static_cast<rank_phase>(stuck->gauge.phase)),
                        number(stuck->gauge.step)));
    else if (const auto stalled = members_->stalled(now, bound))
      step(director_input::epoch_lost, [&] {
        lose_epoch(fmt::format("no rank has made progress for {} ms (deadlines.progress_ms); {} is "
                               "{} at step {}",
                               bound.count(),
                               name_rank(stalled->gauge.rank),
                               stalled->gauge.in_collective != 0
                                 ? "waiting for its tensor group"
                                 : rank_phases.name(static_cast<rank_phase>(stalled->gauge.phase)),
                               number(stalled->gauge.step)));
      });
    else if (is_output_lost(now, bound))
      step(director_input::epoch_lost, [&] {
        fence_epoch(fmt::format("no rank has made progress for {} ms (deadlines.progress_ms), and "
                                "the conductor waits for the output of a step",
                                bound.count()));
      });
    return;
  }
  if ((phase_ == director_phase::gathering || phase_ == director_phase::loading)
      && now - fenced_at_ > bound + absence)
    if (const auto stuck = std::find_if(
          held_.begin(), held_.end(), [](const auto& entry) { return !entry.second.wired; });
        stuck != held_.end())
      expel(stuck->first.first,
            fmt::format("rank {} did not leave its epoch within {} ms (deadlines.progress_ms)",
                        number(stuck->second.what.rank),
                        bound.count()));
}

/// Every rank did its part, and what the last one sent did not arrive.
bool director_state::is_output_lost(clock::time_point now, milliseconds bound) {
  const auto conductor = setup_.board->read();
  if (std::exchange(steps_seen_, conductor.steps) != conductor.steps
      || conductor.steps_in_flight == 0)
    steps_since_ = now;
  return now - steps_since_ > bound && members_->all_still(now, bound);
}

void director_state::look() {
  const auto now = clock::now();
  watch(now);
  look_at_deadlines(now);
  look_at_trace(now);
  if (phase_ != director_phase::stopped)
    self_->delayed_send(director_actor{self_}, tick_interval, tick{});
}

void director_state::look_at_deadlines(clock::time_point now) {
  const auto& deadlines = settings_.deadlines;
  const auto in_phase = now - phase_since_;
  switch (phase_) {
  case director_phase::gathering:
    give_up_linking();
    gather();
    if (phase_ == director_phase::gathering && !served_
        && in_phase > milliseconds{deadlines.join_ms})
      step(director_input::late, [&] {
        fail({errc::timed_out,
              fmt::format("not every node joined within {} ms (deadlines.join_ms). Missing: {}",
                          deadlines.join_ms,
                          members_->missing())});
      });
    break;
  case director_phase::loading:
    if (in_phase > milliseconds{deadlines.load_ms})
      step(director_input::late, [&] {
        fail({errc::timed_out,
              fmt::format("not every rank loaded within {} ms (deadlines.load_ms). Missing: {}",
                          deadlines.load_ms,
                          unloaded())});
      });
    break;
  case director_phase::linking:
    // State that moves takes as long as it takes: ranks look at its progress themselves.
    if (in_phase > milliseconds{2 * deadlines.connect_ms + (restaged_ ? deadlines.load_ms : 0)})
      step(director_input::late, [&] { lose_epoch("ranks did not meet in time: " + unlinked()); });
    break;
  case director_phase::failed:
  case director_phase::stopping: {
    bool gone = true;
    for (const auto& member : members_->members())
      gone = gone && !member.handle;
    if (gone)
      step(director_input::all_ended, [this] { finish(); });
    else if (in_phase > milliseconds{2 * deadlines.drain_ms})
      step(director_input::late, [this] { finish(); });
    break;
  }
  case director_phase::serving: consider_plan(); break;
  case director_phase::stopped: break;
  }
}

/// Nodes that reach the head but not each other: they would try for ever.
void director_state::give_up_linking() {
  const milliseconds patience{settings_.deadlines.join_ms};
  if (served_ || !unlinked_since_ || clock::now() - *unlinked_since_ < patience)
    return;
  step(director_input::late, [&] {
    fail({errc::timed_out,
          fmt::format("the ranks did not meet within {} ms (deadlines.join_ms); the last time {}",
                      patience.count(),
                      reason_)});
  });
}

/// The ranks that have not loaded their shards, for people.
std::string director_state::unloaded() const {
  std::string ranks;
  for (const auto& rank : plan_.ranks) {
    const auto* held = holding_of(rank);
    if (held == nullptr || !held->report)
      ranks += fmt::format("{}{} on node '{}'",
                           ranks.empty() ? "" : ", ",
                           number(rank.rank),
                           settings_.nodes[rank.node].name);
  }
  return ranks;
}

} // namespace troupe::actors
