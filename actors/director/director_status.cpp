#include "actors/director/director_state.hpp"

#include <fmt/core.h>

namespace troupe::actors {

using milliseconds = std::chrono::milliseconds;

std::string director_state::name_rank(rank_id id) const {
  if (number(id) >= plan_.ranks.size()) // of a plan that had more
    return fmt::format("rank {}", number(id));
  const auto& node = settings_.nodes[plan_.ranks.at(number(id)).node];
  return fmt::format("rank {} on node '{}' at {}", number(id), node.name, node.advertise);
}

std::string director_state::unlinked() const {
  std::string ranks;
  for (const auto& rank : plan_.ranks)
    if (!joined_.contains(rank.rank))
      ranks += (ranks.empty() ? "" : ", ") + name_rank(rank.rank);
  return ranks.empty() ? "the conductor" : ranks;
}

cluster_status director_state::status() const {
  const auto now = clock::now();
  const auto since_ms = [now](clock::time_point then) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(now - then).count());
  };
  cluster_status told;
  told.cluster = settings_.cluster.name;
  told.phase = director_phases.name(phase_);
  told.reason = reason_;
  if (phase_ == director_phase::gathering && !seats_->full() && !members_->all_here())
    told.reason = "waiting for " + members_->missing();
  told.epoch = epoch_;
  told.uptime_ms = since_ms(born_);
  for (std::size_t i = 0; i < members_->members().size(); ++i) {
    const auto& member = members_->members()[i];
    told.nodes.push_back({settings_.nodes[i].name,
                          member.handle ? member.hello.address : settings_.nodes[i].advertise,
                          member.handle && member.leaving ? "draining"
                          : member.handle && phase_ == director_phase::serving && !is_placed(i)
                            ? "spare"
                            : member.state,
                          member.reason});
  }
  for (const auto& rank : plan_.ranks) {
    rank_status one;
    one.gauge.rank = rank.rank;
    const auto& member = members_->members()[rank.node];
    for (const auto& gauge : member.gauges)
      if (gauge.rank == rank.rank)
        one.gauge = gauge;
    one.node = settings_.nodes[rank.node].name;
    one.stage = static_cast<std::uint32_t>(rank.where.pipeline);
    one.tensor = static_cast<std::uint32_t>(rank.where.tensor);
    one.first_unit = rank.record.units.begin;
    one.last_unit = rank.record.units.end;
    if (const auto found = links_.find(rank.rank); found != links_.end())
      one.links = found->second;
    if (const auto* held = holding_of(rank); held != nullptr && held->report)
      one.bytes_read = held->report->bytes_read;
    one.silent_ms = member.handle ? since_ms(member.last_beat) : 0;
    told.ranks.push_back(std::move(one));
  }
  told.conductor = setup_.board->read();
  told.epochs_lost = epochs_lost_;
  told.recoveries = recoveries_;
  told.events.assign(events_.begin(), events_.end());
  return told;
}

} // namespace troupe::actors
