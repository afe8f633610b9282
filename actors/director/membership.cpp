#include "actors/director/membership.hpp"

#include "actors/rank/rank_phases.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace troupe::actors {

membership::membership(const cluster_settings& settings, node_hello reference)
  : settings_(settings), reference_(std::move(reference)), members_(settings.nodes.size()) {
  for (const auto& sample : reference_.samples)
    samples_[sample.name] = {sample.digest, reference_.name};
}

result<void> membership::agree(const node_hello& hello) const {
  if (hello.version != protocol_version)
    return error{errc::mismatch,
                 fmt::format("node '{}' speaks protocol {}, this cluster speaks {}; run the same "
                             "version of troupe on all nodes",
                             hello.name,
                             hello.version,
                             protocol_version)};
  const auto differ =
    [&](std::string_view what, const std::string& there, const std::string& here) -> result<void> {
    if (there == here)
      return {};
    return error{errc::mismatch,
                 fmt::format("node '{}' has another {}: {} there, {} on node '{}'",
                             hello.name,
                             what,
                             there,
                             here,
                             reference_.name)};
  };
  if (auto same = differ("cluster name", hello.cluster, reference_.cluster); !same)
    return same;
  if (auto same = differ("cluster file (digest of model, parallel, state, schedule and nodes)",
                         hello.settings,
                         reference_.settings);
      !same)
    return same;
  if (auto same =
        differ("model (digest of config and tensor table)", hello.model, reference_.model);
      !same)
    return same;
  if (auto same = differ("tokenizer (digest)", hello.tokenizer, reference_.tokenizer); !same)
    return same;
  for (const auto& sample : hello.samples) {
    const auto known = samples_.find(sample.name);
    if (known != samples_.end() && known->second.first != sample.digest)
      return error{
        errc::mismatch,
        fmt::format("node '{}' holds other weights: the digest of tensor {} is {} there, "
                    "{} on node '{}'",
                    hello.name,
                    sample.name,
                    sample.digest,
                    known->second.first,
                    known->second.second)};
  }
  return {};
}

result<std::size_t> membership::admit(const node_hello& hello) {
  std::size_t index = 0;
  while (index < settings_.nodes.size() && settings_.nodes[index].name != hello.name)
    ++index;
  if (index == settings_.nodes.size())
    return error{errc::not_found,
                 fmt::format("there is no node '{}' in the cluster file", hello.name)};
  auto& who = members_[index];
  if (who.handle && who.hello.incarnation != hello.incarnation)
    return error{errc::not_now,
                 fmt::format("node '{}' is here already: {}; the second one is {}",
                             hello.name,
                             who.hello.address,
                             hello.address)};
  if (auto agreed = agree(hello); !agreed) {
    who.reason = "it was refused: " + agreed.error().what;
    return agreed.error();
  }
  return index;
}

void membership::join(std::size_t index,
                      const node_hello& hello,
                      const node_actor& handle,
                      time_point now) {
  auto& who = members_[index];
  for (const auto& sample : hello.samples)
    samples_.try_emplace(sample.name, sample.digest, hello.name);
  who.state = "joined";
  who.leaving = false;
  who.reason.clear();
  who.hello = hello;
  who.handle = handle;
  who.last_beat = now;
  who.gauges.clear();
  who.moved.clear();
}

std::optional<std::size_t> membership::find(const caf::actor_addr& who) const {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].handle && members_[i].handle->address() == who)
      return i;
  return std::nullopt;
}

std::optional<std::size_t> membership::lose(const caf::actor_addr& who, const std::string& reason) {
  const auto index = find(who);
  if (index) {
    auto& one = members_[*index];
    one.handle.reset();
    one.state = one.leaving ? "drained" : "lost";
    one.reason = reason;
  }
  return index;
}

bool membership::beat(const node_beat& what, time_point now) {
  for (auto& one : members_) {
    if (!one.handle || one.hello.incarnation != what.incarnation)
      continue;
    one.last_beat = now;
    const auto before = std::exchange(one.gauges, what.ranks);
    for (const auto& gauge : one.gauges) {
      const auto same = std::find_if(before.begin(), before.end(), [&](const auto& former) {
        return former.rank == gauge.rank && former.progress == gauge.progress;
      });
      if (same == before.end())
        one.moved[gauge.rank] = now;
    }
    return true;
  }
  return false;
}

std::optional<std::size_t> membership::silent(time_point now,
                                              std::chrono::milliseconds bound) const {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].handle && now - members_[i].last_beat > bound)
      return i;
  return std::nullopt;
}

namespace {

bool is_in(const rank_gauge& gauge, std::initializer_list<rank_phase> phases) {
  return std::find(phases.begin(), phases.end(), static_cast<rank_phase>(gauge.phase))
         != phases.end();
}

} // namespace

std::optional<membership::still_rank> membership::stuck(time_point now,
                                                        std::chrono::milliseconds bound) const {
  for (std::size_t node = 0; node < members_.size(); ++node)
    for (const auto& gauge : members_[node].gauges)
      if (members_[node].handle && is_in(gauge, {rank_phase::in_group, rank_phase::leaving})
          && gauge.in_collective == 0 && now - members_[node].moved.at(gauge.rank) > bound)
        return still_rank{node, gauge};
  return std::nullopt;
}

bool membership::all_still(time_point now, std::chrono::milliseconds bound) const {
  for (const auto& one : members_)
    for (const auto& gauge : one.gauges)
      if (now - one.moved.at(gauge.rank) <= bound)
        return false;
  return true;
}

std::optional<membership::still_rank> membership::stalled(time_point now,
                                                          std::chrono::milliseconds bound) const {
  if (!all_still(now, bound))
    return std::nullopt;
  for (std::size_t node = 0; node < members_.size(); ++node)
    for (const auto& gauge : members_[node].gauges)
      if (is_in(gauge, {rank_phase::in_group, rank_phase::awaiting_input}))
        return still_rank{node, gauge};
  return std::nullopt;
}

void membership::forgive(time_point now) {
  for (auto& one : members_) {
    one.last_beat = now;
    for (auto& [rank, moved] : one.moved)
      moved = now;
  }
}

bool membership::all_here() const {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (!members_[i].handle && !settings_.nodes[i].spare)
      return false;
  return true;
}

std::vector<bool> membership::available() const {
  std::vector<bool> here;
  for (const auto& one : members_)
    here.push_back(one.handle.has_value() && !one.leaving);
  return here;
}

std::string membership::missing() const {
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& one = members_[i];
    if (one.handle || settings_.nodes[i].spare)
      continue;
    text += fmt::format("{}node '{}' at {} ({})",
                        text.empty() ? "" : "; ",
                        settings_.nodes[i].name,
                        settings_.nodes[i].advertise,
                        one.reason);
  }
  return text;
}

} // namespace troupe::actors
