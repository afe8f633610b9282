// Who sits where: plans are made for the nodes that are here, and change as nodes come and go.

#include "actors/control/system.hpp"
#include "actors/director/director_state.hpp"
#include "actors/plan/guest_settings.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

using milliseconds = std::chrono::milliseconds;

namespace {

/// After a fault within an epoch the director looks for a while whether a process is gone as well.
constexpr milliseconds settle_time{300};
/// The next attempt of ranks that did not meet: what keeps them apart may take a while to pass.
constexpr milliseconds link_pause{1000};

shard_assignment assignment_of(const cluster_plan& plan, const rank_plan& rank) {
  shard_assignment what;
  what.index = static_cast<std::uint32_t>(rank.index_in_node);
  what.rank = rank.rank;
  what.stage = static_cast<std::uint32_t>(rank.where.pipeline);
  what.tensor = static_cast<std::uint32_t>(rank.where.tensor);
  what.pipeline_size = static_cast<std::uint32_t>(plan.sizes.pipeline);
  what.tensor_size = static_cast<std::uint32_t>(plan.sizes.tensor);
  what.first_unit = rank.record.units.begin;
  what.last_unit = rank.record.units.end;
  what.pages = plan.pages;
  return what;
}

/// Whether a rank that was told one may do the work of the other.
bool same_work(const shard_assignment& told, const shard_assignment& wanted) {
  return told.rank == wanted.rank && told.stage == wanted.stage && told.tensor == wanted.tensor
         && told.pipeline_size == wanted.pipeline_size && told.tensor_size == wanted.tensor_size
         && told.first_unit == wanted.first_unit && told.last_unit == wanted.last_unit
         && told.pages == wanted.pages;
}

} // namespace

bool director_state::is_placed(std::size_t node) const {
  return std::find(placed_.begin(), placed_.end(), node) != placed_.end();
}

/// The nodes that are here do without the others once these had their time to come.
bool director_state::may_go_without() const {
  const auto least = settings_.parallel.least_stages;
  return least > 0 && seats_->stages() >= least
         && clock::now() - phase_since_ >= milliseconds{settings_.recovery.shrink_after_ms};
}

// -- guests ---------------------------------------------------------------------------------------

cluster_terms director_state::terms() const {
  return {shared_cluster_text(*setup_.settings), shared_cluster_text(settings_)};
}

/// A node that is not in the file gets a place behind those that are, or the one that it had.
result<void> director_state::take_guest(const node_hello& hello) {
  auto grown = with_guest(settings_, hello.guest);
  if (!grown)
    return grown.error();
  const auto* guest = grown->find_node(hello.name);
  const auto index = static_cast<std::size_t>(guest - grown->nodes.data());
  if (guest == nullptr || index < setup_.settings->nodes.size())
    return error{errc::invalid_config,
                 fmt::format("'{}' is no name for a guest of this cluster", hello.name)};
  if (index < members_->members().size() && members_->at(index).handle)
    return {}; // admit() says what there is to say
  count_stages(*grown);
  if (!guest->spare) {
    auto nodes = placed_;
    nodes.push_back(index);
    if (auto plan = setup_.replan(*grown, nodes); !plan)
      return with_context("the cluster has no plan with it", plan.error());
  }
  settings_ = *std::move(grown);
  members_->grow();
  seats_->add(index);
  return {};
}

/// Nobody waits for a guest to come back.
void director_state::see_off(std::size_t node) {
  if (node < setup_.settings->nodes.size())
    return;
  seats_->remove(node);
  settings_.nodes[node].spare = true;
  count_stages(settings_);
}

/// As many as the nodes make. Layers that were dealt by hand are so for the stages of the file.
void director_state::count_stages(cluster_settings& settings) const {
  std::size_t ranks = 0;
  for (const auto& node : settings.nodes)
    ranks += node.spare ? 0 : node.ranks;
  settings.parallel = setup_.settings->parallel;
  settings.parallel.pipeline = ranks / settings.parallel.tensor;
  if (settings.parallel.pipeline != setup_.settings->parallel.pipeline)
    settings.parallel.layers.clear();
}

// -- seats ----------------------------------------------------------------------------------------

void director_state::gather() {
  auto pause = served_ ? settle_time : milliseconds{0};
  if (unlinked_since_)
    pause = link_pause;
  if (clock::now() - phase_since_ < pause)
    return;
  seats_->refill(members_->available());
  if (!seats_->full() && !may_go_without())
    return;
  if (auto adopted = adopt(seats_->holders()); !adopted) {
    reason_ = adopted.error().what;
    return;
  }
  step(director_input::all_here, [this] {
    reason_ = "ranks are loading";
    assign(plan_, {});
    link_if_loaded();
  });
}

result<void> director_state::adopt(const std::vector<std::size_t>& nodes) {
  if (nodes == placed_)
    return {};
  auto plan = setup_.replan(settings_, nodes);
  if (!plan)
    return with_context(fmt::format("no plan for {} nodes", nodes.size()), plan.error());
  plan_ = std::move(*plan);
  placed_ = nodes;
  restaged_ = served_;
  log::info("director plans {} stages of {} on {} nodes",
            plan_.sizes.pipeline,
            plan_.sizes.tensor,
            nodes.size());
  return {};
}

bool director_state::holds(const cluster_plan& plan, const rank_plan& rank) const {
  const auto* held = holding_of(rank);
  return held != nullptr && same_work(held->what, assignment_of(plan, rank));
}

const director_state::holding* director_state::holding_of(const rank_plan& rank) const {
  const auto found = held_.find(place_of(rank));
  return found == held_.end() ? nullptr : &found->second;
}

/// Tells the nodes of a plan, but for `except`, what they have to load.
void director_state::assign(const cluster_plan& plan, const std::set<std::size_t>& except) {
  std::map<std::size_t, node_assignment> work;
  for (const auto& rank : plan.ranks) {
    if (except.contains(rank.node) || holds(plan, rank))
      continue;
    auto what = assignment_of(plan, rank);
    what.serial = ++last_serial_;
    auto& place = held_[{rank.node, what.index}];
    const bool wired = place.what.serial == 0 || place.wired;
    place = holding{what, std::nullopt, wired};
    work[rank.node].ranks.push_back(what);
  }
  for (auto& [node, ranks] : work) {
    ranks.run = setup_.reference.incarnation;
    self_->send(*members_->at(node).handle, std::move(ranks));
  }
}

// -- plans that change while the cluster serves ---------------------------------------------------

/// A node that joined takes its seat, one that is to leave gives it up: the plan that follows is
/// prepared while the present one serves.
void director_state::consider_plan() {
  if (phase_ != director_phase::serving)
    return;
  seats_->refill(members_->available());
  const auto wanted = seats_->holders();
  if (wanted == placed_) {
    coming_.reset();
    release_drained();
    return;
  }
  if (!coming_ || coming_->nodes != wanted) {
    auto plan = setup_.replan(settings_, wanted);
    if (!plan) {
      log::warn("director has no plan for {} nodes: {}", wanted.size(), plan.error().what);
      return;
    }
    coming_ = coming_plan{std::move(*plan), wanted};
    log::info(
      "director prepares {} stages on {} nodes", coming_->plan.sizes.pipeline, wanted.size());
    assign(coming_->plan, {placed_.begin(), placed_.end()});
  }
  const bool ready =
    std::all_of(coming_->plan.ranks.begin(), coming_->plan.ranks.end(), [this](const auto& rank) {
      const auto* held = holding_of(rank);
      return is_placed(rank.node) || (held != nullptr && held->report);
    });
  if (ready)
    step(director_input::replan, [this] { switch_plan(); });
}

/// At a step border: what was in flight is done again under the new plan.
void director_state::switch_plan() {
  const auto why = fmt::format(
    "the plan changes from {} to {} stages", plan_.sizes.pipeline, coming_->plan.sizes.pipeline);
  tell(why);
  fence_epoch(why);
  plan_ = std::move(coming_->plan);
  placed_ = std::move(coming_->nodes);
  restaged_ = true;
  coming_.reset();
  assign(plan_, {});
  link_if_loaded();
}

/// Where the state of each layer was when the cluster last served, and where the layer is now.
/// Ranks that are of the former plan only get numbers behind those of the new one.
void director_state::plan_moves(epoch_plan& plan) const {
  std::map<host_place, rank_id> number_of;
  for (const auto& rank : plan_.ranks)
    number_of.emplace(place_of(rank), rank.rank);
  for (const auto& source : sources_) {
    const auto held = held_.find(source.place);
    if (held == held_.end() || !held->second.report)
      continue;
    auto known = number_of.find(source.place);
    if (known == number_of.end()) {
      const auto next = static_cast<rank_id>(plan.ranks.size() + plan.leavers.size());
      const auto& report = *held->second.report;
      plan.leavers.push_back({next,
                              static_cast<std::uint32_t>(source.place.first),
                              report.index,
                              report.address,
                              report.host,
                              report.segment,
                              report.life});
      known = number_of.emplace(source.place, next).first;
    }
    for (const auto& rank : plan_.ranks) {
      const auto first = std::max(rank.record.units.begin, source.units.begin);
      const auto last = std::min(rank.record.units.end, source.units.end);
      if (first < last && rank.where.tensor == source.tensor && place_of(rank) != source.place)
        plan.moves.push_back({known->second, rank.rank, first, last});
    }
  }
}

/// Those that are not of the plan any more have left the last epoch as well.
bool director_state::sources_wired() const {
  return std::all_of(sources_.begin(), sources_.end(), [this](const auto& source) {
    const auto held = held_.find(source.place);
    return held == held_.end() || held->second.wired;
  });
}

caf::result<void> director_state::drain(const node_drain& which) {
  const auto& settings = settings_;
  for (std::size_t node = 0; node < settings.nodes.size(); ++node) {
    if (settings.nodes[node].name != which.node)
      continue;
    auto& member = members_->at(node);
    if (!member.handle)
      return to_caf({errc::not_found, fmt::format("node '{}' is not here", which.node)});
    if (node == settings.head_index())
      return to_caf(
        {errc::invalid_argument,
         fmt::format("node '{}' is the head; `troupe stop` ends the cluster", which.node)});
    auto left = *seats_;
    auto available = members_->available();
    available[node] = false;
    left.refill(available);
    const auto least = settings.parallel.least_stages > 0 ? settings.parallel.least_stages
                                                          : setup_.settings->parallel.pipeline;
    if (is_placed(node) && left.stages() < least)
      return to_caf(
        {errc::invalid_argument,
         fmt::format("without node '{}' the cluster would have {} stages, {} are the least "
                     "(parallel.least_stages = {})",
                     which.node,
                     left.stages(),
                     least,
                     settings.parallel.least_stages)});
    log::info("director drains node '{}'", which.node);
    member.leaving = true;
    consider_plan();
    return caf::unit;
  }
  return to_caf({errc::not_found, fmt::format("there is no node '{}'", which.node)});
}

void director_state::release_drained() {
  for (std::size_t node = 0; node < members_->members().size(); ++node)
    if (const auto& member = members_->at(node);
        member.leaving && member.handle && !is_placed(node))
      self_->send(*member.handle, node_stop{"it was drained"});
}

} // namespace troupe::actors
