#include "actors/director/director.hpp"

#include "actors/control/system.hpp"
#include "actors/director/director_state.hpp"
#include "actors/faults.hpp"
#include "actors/rank/tracer.hpp"
#include "config/log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <utility>

namespace troupe::actors {

namespace {

using milliseconds = std::chrono::milliseconds;

constexpr milliseconds tick_interval{100};

} // namespace

void director_state::start(self_pointer actor, director_setup given) {
  self_ = actor;
  setup_ = std::move(given);
  settings_ = *setup_.settings;
  members_ = std::make_unique<membership>(settings_, setup_.reference);
  seats_ = std::make_unique<placement>(settings_);
  plan_ = setup_.plan;
  for (std::size_t node = 0; node < settings_.nodes.size(); ++node)
    if (!settings_.nodes[node].spare)
      placed_.push_back(node);
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
  if (!hello.guest.empty() && hello.settings == setup_.reference.settings)
    if (auto taken = take_guest(hello); !taken) {
      log::error("director refuses guest '{}': {}", hello.name, taken.error().what);
      return to_caf(taken.error());
    }
  auto index = members_->admit(hello);
  if (!index) {
    log::error("director refuses node '{}': {}", hello.name, index.error().what);
    return to_caf(index.error());
  }
  if (director_phases.at(phase_, director_input::hello).what != verdict::go)
    return to_caf(
      {errc::overloaded,
       fmt::format("the cluster takes no nodes now: it is {}", director_phases.name(phase_))});
  members_->join(*index, hello, node, clock::now());
  self_->monitor(node);
  step(director_input::hello, [&] {
    log::info("director node '{}' joined from {}", hello.name, hello.address);
    tell_joined(hello.name);
    std::erase_if(held_, [&](const auto& entry) { return entry.first.first == *index; });
    take_held(*index, hello);
    self_->send(node, node_assignment{}); // now it knows whom to report to
    for (auto& order : std::exchange(orders_[*index], {}))
      self_->send(node, std::move(order));
    unlinked_since_.reset(); // another process, another chance
    if (phase_ == director_phase::serving)
      consider_plan();
    else
      gather();
  });
  return node_welcome{incarnation_};
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

/// The place of a rank that reports, by the node that passes the report on.
std::optional<director_state::host_place>
director_state::place_of_sender(std::uint32_t index) const {
  const auto& sender = self_->current_sender();
  const auto node = sender ? members_->find(sender->address()) : std::nullopt;
  return node ? std::optional{host_place{*node, index}} : std::nullopt;
}

/// What a node still holds of a former head's plan need not be loaded again.
void director_state::take_held(std::size_t node, const node_hello& hello) {
  epoch_ = std::max(epoch_, hello.last_epoch);
  for (const auto& shard : hello.held) {
    if (auto same = compare_digests(shard.report); !same) {
      log::warn("director node '{}' loads anew: {}", hello.name, same.error().what);
      continue;
    }
    last_serial_ = std::max(last_serial_, shard.what.serial);
    held_[{node, shard.what.index}] = holding{shard.what, shard.report, true};
    log::info("director node '{}' still holds layers {} to {}",
              hello.name,
              shard.what.first_unit,
              shard.what.last_unit);
  }
}

void director_state::take(const rank_loaded& report) {
  const auto place = place_of_sender(report.index);
  const auto found = place ? held_.find(*place) : held_.end();
  if (found == held_.end() || found->second.what.serial != report.serial)
    return; // of a shard that is not wanted any more
  step(director_input::rank_loaded, [&] {
    if (auto same = compare_digests(report); !same) {
      lose_shard(place->first, same.error());
      return;
    }
    found->second.report = report;
    log::info("director rank {} on node '{}' loaded {} bytes in {} ms",
              number(report.rank),
              settings_.nodes[place->first].name,
              report.bytes_read,
              report.load_us / 1000);
    if (phase_ == director_phase::serving)
      consider_plan();
    else
      link_if_loaded();
  });
}

/// Before the cluster has ever served, a shard that cannot be had is for people to mend; later the
/// others wait for that node, or go on without it.
void director_state::lose_shard(std::size_t node, const error& why) {
  if (served_)
    expel(node, why.what);
  else
    step(director_input::hopeless, [&] { fail(why); });
}

bool director_state::all_loaded() const {
  return std::all_of(plan_.ranks.begin(), plan_.ranks.end(), [this](const auto& rank) {
    const auto* held = holding_of(rank);
    return held != nullptr && held->report && held->wired;
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
  plan.pipeline_size = static_cast<std::uint32_t>(plan_.sizes.pipeline);
  plan.tensor_size = static_cast<std::uint32_t>(plan_.sizes.tensor);
  plan.pages = plan_.pages;
  plan.conductor = setup_.conductor->address;
  for (const auto& rank : plan_.ranks) {
    const auto& report = *holding_of(rank)->report;
    plan.ranks.push_back({rank.rank,
                          static_cast<std::uint32_t>(rank.node),
                          report.index,
                          report.address,
                          report.host,
                          report.segment,
                          report.life});
  }
  plan.restaged = restaged_ ? 1 : 0;
  if (restaged_)
    plan_moves(plan);
  sources_.clear();
  for (const auto& member : members_->members())
    if (member.handle)
      self_->send(*member.handle, plan);
}

void director_state::take(const rank_rewired& report) {
  if (report.rank == conductor_rank) {
    conductor_wired_ = true;
    setup_.conductor->address = report.address;
  } else if (const auto place = place_of_sender(report.index)) {
    if (const auto found = held_.find(*place); found != held_.end()) {
      found->second.wired = true;
      if (found->second.report) {
        found->second.report->address = report.address;
        found->second.report->segment = report.segment;
      }
    }
  }
  link_if_loaded();
}

void director_state::link_if_loaded() {
  if (phase_ == director_phase::loading && conductor_wired_ && all_loaded() && sources_wired())
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
    if (joined_.size() == plan_.ranks.size() + 1)
      step(director_input::all_joined, [this] { serve(); });
  });
}

void director_state::serve() {
  served_ = true;
  unlinked_since_.reset();
  restaged_ = false;
  sources_.clear();
  for (const auto& rank : plan_.ranks)
    sources_.push_back({place_of(rank), rank.record.units, rank.where.tensor});
  reason_.clear();
  tell_serving();
  log::info("director epoch {} serves with {} ranks", number(epoch_), plan_.ranks.size());
  consider_plan();
}

void director_state::take(const rank_fault& fault) {
  if (fault.phase == rank_phases.name(rank_phase::loading)) {
    const error why{static_cast<errc>(fault.code), fault.what};
    if (const auto place = place_of_sender(0))
      lose_shard(place->first, why);
    else // the conductor's wires
      step(director_input::hopeless, [&] { fail(why); });
    return;
  }
  if (fault.epoch != epoch_)
    return;
  const auto who =
    fault.rank == conductor_rank ? std::string{"the conductor"} : name_rank(fault.rank);
  auto why = fmt::format(
    "{} gave up while {} at step {}: {}", who, fault.phase, number(fault.step), fault.what);
  if (phase_ == director_phase::linking)
    why += fmt::format("; not linked: {}", unlinked());
  step(director_input::epoch_lost, [&] { lose_epoch(why); });
}

void director_state::fence_epoch(const std::string& reason, bool node_missing) {
  log::warn("director epoch {} is over: {}", number(epoch_), reason);
  reason_ = reason;
  const fence over{epoch_, reason, static_cast<std::uint8_t>(node_missing)};
  for (const auto& member : members_->members())
    if (member.handle)
      self_->send(*member.handle, over);
  links_.clear();
  fenced_at_ = clock::now();
  conductor_wired_ = false;
  for (const auto& rank : plan_.ranks)
    if (const auto found = held_.find(place_of(rank)); found != held_.end())
      found->second.wired = false;
}

void director_state::node_gone(const caf::actor_addr& who, const std::string& reason) {
  const auto index = members_->lose(who, reason);
  if (!index)
    return;
  const auto& node = settings_.nodes[*index];
  std::erase_if(held_, [&](const auto& entry) { return entry.first.first == *index; });
  std::erase_if(sources_, [&](const auto& source) { return source.place.first == *index; });
  see_off(*index);
  if (!is_placed(*index)) {
    log::info("director node '{}' has left: {}", node.name, reason);
    if (coming_)
      consider_plan();
    return;
  }
  coming_.reset();
  const auto before = phase_;
  step(director_input::node_lost, [&] {
    const auto why = fmt::format("node '{}' at {} is gone: {}", node.name, node.advertise, reason);
    if (before == director_phase::linking || before == director_phase::serving)
      lose_epoch(why, true);
    else if (phase_ == director_phase::gathering) {
      log::warn("director {}", why);
      tell(why);
      self_->send(setup_.conductor->handle, fence{epoch_, why, 1});
    } else
      log::info("director node '{}' has ended", node.name);
    if (phase_ == director_phase::gathering)
      reason_ = why;
  });
}

void director_state::beat(const node_beat& what) {
  if (!self_->current_sender())
    return;
  if (members_->beat(what, clock::now())) {
    self_->send(caf::actor_cast<node_actor>(self_->current_sender()),
                beat_heard{incarnation_, what.sent_ns, steady_ns(clock::now())});
    return;
  }
  // It was silent for so long that the cluster went on without it, and now it speaks again.
  self_->send(caf::actor_cast<node_actor>(self_->current_sender()),
              node_stop{"it was silent for too long; the cluster went on without it",
                        static_cast<std::uint8_t>(errc::timed_out)});
}

caf::result<fault_receipt> director_state::take(const fault_order& order) {
  const auto ordered = read_order(settings_, order);
  if (!ordered)
    return to_caf(ordered.error());
  for (std::size_t node = 0; node < members_->members().size(); ++node)
    if (const auto& member = members_->at(node); member.handle)
      self_->send(*member.handle, order);
    else
      orders_[node].push_back(order); // for when it is here
  self_->send(setup_.conductor->handle, order);
  auto receipt = describe_order(settings_, *ordered);
  tell(receipt, "asked for by `troupe inject`");
  return fault_receipt{std::move(receipt)};
}

// -- the end --------------------------------------------------------------------------------------

void director_state::fail(const error& why) {
  log::error("director {}", why.what);
  failed_ = true;
  failure_ = why;
  reason_ = why.what;
  const node_stop order{why.what, static_cast<std::uint8_t>(why.code)};
  self_->send(setup_.conductor->handle, fence{epoch_, why.what});
  self_->send(setup_.conductor->handle, order);
  end_nodes(order);
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
    [&my](const terms_query&) -> caf::result<cluster_terms> { return my.terms(); },
    [&my](const status_query&) -> caf::result<cluster_status> { return my.status(); },
    [&my](const node_drain& m) { return my.drain(m); },
    [&my](const fault_order& m) { return my.take(m); },
    [&my](const trace_order& m) { return my.take(m); },
    [&my](const trace_part& m) { my.take(m); },
    [&my](const tick&) { my.look(); },
    [&my](const cluster_stop& m) { my.stop(m.reason); },
  };
}

} // namespace

director_actor spawn_director(caf::actor_system& system, director_setup setup) {
  return system.spawn(director, std::make_shared<director_setup>(std::move(setup)));
}

} // namespace troupe::actors
