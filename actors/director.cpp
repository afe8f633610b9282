#include "actors/director.hpp"

#include "actors/director_state.hpp"
#include "actors/system.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <chrono>
#include <random>
#include <set>
#include <utility>

namespace troupe::actors {

namespace {

using milliseconds = std::chrono::milliseconds;

constexpr milliseconds tick_interval{100};
/// After a fault within an epoch the director looks for a while whether a process is gone as well.
constexpr milliseconds settle_time{300};
/// The next attempt of ranks that did not meet: what keeps them apart may take a while to pass.
constexpr milliseconds link_pause{1000};
/// A director that was kept from looking for so long cannot tell who was silent meanwhile.
constexpr milliseconds absence{500};

} // namespace

void director_state::start(self_pointer actor, director_setup given) {
  self_ = actor;
  setup_ = std::move(given);
  members_ = std::make_unique<membership>(*setup_.settings, setup_.reference);
  reason_ = "the cluster is starting";
  self_->set_down_handler([this](const caf::down_msg& down) {
    node_gone(down.source,
              "its process ended or its connection broke (" + self_->system().render(down.reason)
                + ")");
  });
  self_->delayed_send(director_actor{self_}, tick_interval, tick{});
}

// -- gathering and loading ------------------------------------------------------------------------

caf::result<node_welcome> director_state::take(const node_hello& hello, const node_actor& node) {
  auto index = members_->admit(hello);
  if (!index) {
    log::error("director refuses node '{}': {}", hello.name, index.error().what);
    return to_caf(index.error());
  }
  if (director_phases.at(phase_, director_input::hello).what != verdict::go)
    return to_caf(
      {errc::not_now,
       fmt::format("the cluster takes no nodes now: it is {}", director_phases.name(phase_))});
  members_->join(*index, hello, node, clock::now());
  self_->monitor(node);
  step(director_input::hello, [&] {
    log::info("director node '{}' joined from {}", hello.name, hello.address);
    for (const auto& rank : setup_.plan.ranks)
      if (rank.node == *index)
        loaded_.erase(rank.rank);
    unlinked_since_.reset(); // another process, another chance
    gather();
  });
  return node_welcome{incarnation_};
}

void director_state::gather() {
  auto pause = served_ ? settle_time : milliseconds{0};
  if (unlinked_since_)
    pause = link_pause;
  if (members_->all_here() && clock::now() - phase_since_ >= pause)
    step(director_input::all_here, [this] { assign(); });
}

/// Nodes that reach the head but not each other: they would try for ever.
void director_state::give_up_linking() {
  const milliseconds patience{setup_.settings->deadlines.join_ms};
  if (served_ || !unlinked_since_ || clock::now() - *unlinked_since_ < patience)
    return;
  step(director_input::late, [&] {
    fail({errc::timed_out,
          fmt::format("the ranks did not meet within {} ms (deadlines.join_ms); the last time {}",
                      patience.count(),
                      reason_)});
  });
}

void director_state::assign() {
  reason_ = "ranks are loading";
  for (std::size_t node = 0; node < members_->members().size(); ++node) {
    node_assignment work;
    for (const auto& rank : setup_.plan.ranks) {
      if (rank.node != node || loaded_.contains(rank.rank))
        continue;
      shard_assignment what;
      what.rank = rank.rank;
      what.stage = static_cast<std::uint32_t>(rank.where.pipeline);
      what.tensor = static_cast<std::uint32_t>(rank.where.tensor);
      what.pipeline_size = static_cast<std::uint32_t>(setup_.plan.sizes.pipeline);
      what.tensor_size = static_cast<std::uint32_t>(setup_.plan.sizes.tensor);
      what.first_unit = rank.record.units.begin;
      what.last_unit = rank.record.units.end;
      what.pages = setup_.plan.pages;
      work.ranks.push_back(what);
    }
    if (!work.ranks.empty())
      self_->send(*members_->at(node).handle, std::move(work));
  }
  link_if_loaded();
}

result<void> director_state::compare_digests(const rank_loaded& report) {
  for (const auto& part : report.digests) {
    const auto [known, fresh] = digests_.try_emplace(part.name, part.digest, report.rank);
    if (!fresh && known->second.first != part.digest)
      return error{errc::mismatch,
                   fmt::format("ranks {} and {} hold different weights: the digest of {} is {} on "
                               "the first and {} on the second",
                               number(known->second.second),
                               number(report.rank),
                               part.name,
                               known->second.first,
                               part.digest)};
  }
  return {};
}

void director_state::take(const rank_loaded& report) {
  step(director_input::rank_loaded, [&] {
    if (auto same = compare_digests(report); !same) {
      step(director_input::hopeless, [&] { fail(same.error()); });
      return;
    }
    loaded_[report.rank] = report;
    log::info("director rank {} loaded {} bytes in {} ms ({} of {})",
              number(report.rank),
              report.bytes_read,
              report.load_us / 1000,
              loaded_.size(),
              setup_.plan.ranks.size());
    link_if_loaded();
  });
}

// -- epochs ---------------------------------------------------------------------------------------

void director_state::link() {
  reason_ = "ranks are meeting their neighbours";
  if (!unlinked_since_)
    unlinked_since_ = clock::now();
  epoch_ = static_cast<epoch_id>(number(epoch_) + 1);
  joined_.clear();
  epoch_plan plan;
  plan.epoch = epoch_;
  std::random_device random; // the system's generator
  for (int i = 0; i < 16; ++i)
    plan.token.push_back(static_cast<std::uint8_t>(random()));
  plan.pipeline_size = static_cast<std::uint32_t>(setup_.plan.sizes.pipeline);
  plan.tensor_size = static_cast<std::uint32_t>(setup_.plan.sizes.tensor);
  plan.pages = setup_.plan.pages;
  plan.conductor = setup_.conductor->address;
  for (const auto& rank : setup_.plan.ranks) {
    const auto& report = loaded_.at(rank.rank);
    plan.ranks.push_back({rank.rank,
                          static_cast<std::uint32_t>(rank.node),
                          report.address,
                          report.host,
                          report.segment,
                          report.life});
  }
  for (const auto& member : members_->members())
    self_->send(*member.handle, plan);
  self_->send(setup_.conductor->handle, plan);
}

void director_state::take(const rank_rewired& report) {
  unwired_.erase(report.rank);
  if (report.rank == conductor_rank) {
    setup_.conductor->address = report.address;
  } else if (const auto found = loaded_.find(report.rank); found != loaded_.end()) {
    found->second.address = report.address;
    found->second.segment = report.segment;
  }
  link_if_loaded();
}

void director_state::link_if_loaded() {
  if (phase_ == director_phase::loading && unwired_.empty()
      && loaded_.size() == setup_.plan.ranks.size())
    step(director_input::all_loaded, [this] { link(); });
}

void director_state::take(const rank_joined& report) {
  if (report.epoch != epoch_)
    return;
  step(director_input::rank_joined, [&] {
    joined_.insert(report.rank);
    links_[report.rank] = report.links;
    if (report.rank != conductor_rank)
      log::info("director rank {} linked: {}", number(report.rank), report.links);
    if (joined_.size() == setup_.plan.ranks.size() + 1)
      step(director_input::all_joined, [this] { serve(); });
  });
}

void director_state::serve() {
  served_ = true;
  unlinked_since_.reset();
  reason_.clear();
  log::info("director epoch {} serves with {} ranks", number(epoch_), setup_.plan.ranks.size());
}

void director_state::take(const rank_fault& fault) {
  const auto who =
    fault.rank == conductor_rank ? std::string{"the conductor"} : name_rank(fault.rank);
  auto why = fmt::format(
    "{} gave up while {} at step {}: {}", who, fault.phase, number(fault.step), fault.what);
  if (fault.phase == rank_phases.name(rank_phase::loading)) {
    step(director_input::hopeless, [&] { fail({static_cast<errc>(fault.code), fault.what}); });
    return;
  }
  if (fault.epoch != epoch_)
    return;
  if (phase_ == director_phase::linking)
    why += fmt::format("; not linked: {}", unlinked());
  step(director_input::epoch_lost, [&] { fence_epoch(why); });
}

void director_state::fence_epoch(const std::string& reason) {
  log::warn("director epoch {} is over: {}", number(epoch_), reason);
  reason_ = reason;
  const fence over{epoch_, reason};
  for (const auto& member : members_->members())
    if (member.handle)
      self_->send(*member.handle, over);
  self_->send(setup_.conductor->handle, over);
  links_.clear();
  fenced_at_ = clock::now();
  unwired_.insert(conductor_rank);
  for (const auto& [rank, report] : loaded_)
    unwired_.insert(rank);
}

void director_state::node_gone(const caf::actor_addr& who, const std::string& reason) {
  const auto index = members_->lose(who, reason);
  if (!index)
    return;
  const auto& node = setup_.settings->nodes[*index];
  for (const auto& rank : setup_.plan.ranks)
    if (rank.node == *index) {
      loaded_.erase(rank.rank);
      unwired_.erase(rank.rank);
    }
  const auto before = phase_;
  step(director_input::node_lost, [&] {
    const auto why = fmt::format("node '{}' at {} is gone: {}", node.name, node.advertise, reason);
    if (before == director_phase::linking || before == director_phase::serving)
      fence_epoch(why);
    else if (phase_ == director_phase::gathering)
      log::warn("director {}", why);
    else
      log::info("director node '{}' has ended", node.name);
    if (phase_ == director_phase::gathering)
      reason_ = why;
  });
}

void director_state::beat(const node_beat& what) {
  if (!self_->current_sender())
    return;
  if (members_->beat(what, clock::now())) {
    self_->send(caf::actor_cast<node_actor>(self_->current_sender()), beat_heard{incarnation_});
    return;
  }
  // It was silent for so long that the cluster went on without it, and now it speaks again.
  self_->send(caf::actor_cast<node_actor>(self_->current_sender()),
              node_stop{"it was silent for too long; the cluster went on without it"});
}

// -- the end --------------------------------------------------------------------------------------

void director_state::fail(const error& why) {
  log::error("director {}", why.what);
  failed_ = true;
  failure_ = why;
  reason_ = why.what;
  self_->send(setup_.conductor->handle, fence{epoch_, why.what});
  self_->send(setup_.conductor->handle, node_stop{why.what});
  end_nodes({why.what, static_cast<std::uint8_t>(why.code)});
}

void director_state::end_nodes(const node_stop& order) {
  for (const auto& member : members_->members())
    if (member.handle)
      self_->send(*member.handle, order);
}

void director_state::stop(const std::string& reason) {
  step(director_input::stop, [&] {
    reason_ = reason;
    self_->monitor(setup_.conductor->handle);
    self_->set_down_handler([this](const caf::down_msg& down) {
      if (down.source == setup_.conductor->handle.address())
        end_nodes({reason_});
      else
        node_gone(down.source, "it ended");
    });
    self_->send(setup_.conductor->handle, node_stop{reason});
  });
}

void director_state::finish() {
  setup_.on_end(failed_ ? result<void>{failure_} : result<void>{});
  setup_.conductor.reset();
  self_->quit();
}

/// A node that cannot do its work is told to end; whether it hears that does not matter. Without
/// the head's own node there is no cluster: every process ends, and whoever started it starts it
/// again.
void director_state::expel(std::size_t node, const std::string& reason) {
  if (node == setup_.settings->head_index()) {
    step(director_input::hopeless, [&] { fail({errc::timed_out, reason}); });
    return;
  }
  const auto handle = *members_->at(node).handle;
  self_->send(handle, node_stop{reason, static_cast<std::uint8_t>(errc::timed_out)});
  node_gone(handle.address(), reason);
}

/// Liveness is progress: of nodes by their beats, of ranks by their counters.
void director_state::watch(clock::time_point now) {
  if (now - std::exchange(looked_at_, now) > absence)
    members_->forgive(now);
  const milliseconds bound{setup_.settings->deadlines.progress_ms};
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
        fence_epoch(
          fmt::format("no rank has made progress for {} ms (deadlines.progress_ms); {} is "
                      "{} at step {}",
                      bound.count(),
                      name_rank(stalled->gauge.rank),
                      stalled->gauge.in_collective != 0
                        ? "waiting for its tensor group"
                        : rank_phases.name(static_cast<rank_phase>(stalled->gauge.phase)),
                      number(stalled->gauge.step)));
      });
    return;
  }
  if ((phase_ == director_phase::gathering || phase_ == director_phase::loading)
      && now - fenced_at_ > bound + absence)
    for (const auto rank : std::set<rank_id>{unwired_})
      if (rank != conductor_rank && unwired_.contains(rank))
        expel(setup_.plan.ranks.at(number(rank)).node,
              fmt::format("{} did not leave its epoch within {} ms (deadlines.progress_ms)",
                          name_rank(rank),
                          bound.count()));
}

void director_state::look() {
  const auto now = clock::now();
  watch(now);
  look_at_deadlines(now);
  if (phase_ != director_phase::stopped)
    self_->delayed_send(director_actor{self_}, tick_interval, tick{});
}

void director_state::look_at_deadlines(clock::time_point now) {
  const auto& deadlines = setup_.settings->deadlines;
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
        std::string ranks;
        for (const auto& rank : setup_.plan.ranks)
          if (!loaded_.contains(rank.rank))
            ranks += fmt::format("{}{} on node '{}'",
                                 ranks.empty() ? "" : ", ",
                                 number(rank.rank),
                                 setup_.settings->nodes[rank.node].name);
        fail({errc::timed_out,
              fmt::format("not every rank loaded within {} ms (deadlines.load_ms). Missing: {}",
                          deadlines.load_ms,
                          ranks)});
      });
    break;
  case director_phase::linking:
    if (in_phase > milliseconds{2 * deadlines.connect_ms})
      step(director_input::late, [&] { fence_epoch("ranks did not meet in time: " + unlinked()); });
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
  default: break;
  }
}

// -- behaviour ------------------------------------------------------------------------------------

namespace {

director_actor::behavior_type director(director_state::self_pointer self,
                                       const std::shared_ptr<director_setup>& setup) {
  auto& my = self->state;
  my.start(self, std::move(*setup));
  return {
    [&my](const node_hello& hello, const node_actor& node) { return my.take(hello, node); },
    [&my](const rank_loaded& m) { my.take(m); },
    [&my](const rank_rewired& m) { my.take(m); },
    [&my](const rank_joined& m) { my.take(m); },
    [&my](const rank_fault& m) { my.take(m); },
    [&my](const node_beat& m) { my.beat(m); },
    [&my](const status_query&) -> caf::result<cluster_status> { return my.status(); },
    [&my](const tick&) { my.look(); },
    [&my](const cluster_stop& m) { my.stop(m.reason); },
  };
}

} // namespace

director_actor spawn_director(caf::actor_system& system, director_setup setup) {
  return system.spawn(director, std::make_shared<director_setup>(std::move(setup)));
}

} // namespace troupe::actors
