#include "actors/faults.hpp"

#include "actors/conductor/conductor_phases.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/rank/rank_phases.hpp"
#include "config/log.hpp"
#include "config/nearest.hpp"
#include "transport/faults/faulty_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace troupe::actors {

namespace {

/// What is wrong with the phase that a fault names; nothing where it is one.
std::optional<fault_mistake> wrong_phase(const fault& one) {
  if (one.when.event != fault_event::phase)
    return std::nullopt;
  const bool at_conductor = one.spots.front().at == conductor_spot;
  const auto known = at_conductor ? std::span<const std::string_view>{conductor_phases.phase_names}
                                  : std::span<const std::string_view>{rank_phases.phase_names};
  if (std::find(known.begin(), known.end(), one.when.phase) != known.end())
    return std::nullopt;
  const auto guess = nearest(one.when.phase, known);
  return fault_mistake{fmt::format("{} has no phase \"{}\"",
                                   at_conductor ? "the conductor" : "a rank",
                                   one.when.phase),
                       guess.empty() ? fmt::format("it has {}", fmt::join(known, ", "))
                                     : fmt::format("did you mean \"{}\"?", guess)};
}

/// From when on the moment of a fault is looked for that is ordered while the cluster serves.
std::string_view takes_hold(fault_action what) {
  switch (what) {
  case fault_action::kill:
  case fault_action::stop:
  case fault_action::slow: return "at once";
  case fault_action::refuse_allocation:
  case fault_action::nan: return "when the rank loads the next time";
  default: return "from the next epoch on";
  }
}

} // namespace

result<std::vector<fault>> faults_of(const cluster_settings& settings) {
  mistakes found;
  auto faults = read_faults(settings, found);
  for (const auto& one : faults)
    if (const auto wrong = wrong_phase(one))
      found.add(settings.point_at(one.name + ".when", wrong->what, wrong->instead));
  if (!found.none())
    return found.to_error();
  return faults;
}

fault_order to_order(const fault_settings& wanted) {
  return {wanted.what,
          wanted.where,
          wanted.when,
          wanted.times,
          wanted.steps,
          wanted.ms,
          static_cast<float>(wanted.factor),
          wanted.length,
          wanted.seed};
}

result<fault> read_order(const cluster_settings& settings, const fault_order& order) {
  auto one = read_fault(settings,
                        {order.what,
                         order.where,
                         order.when,
                         order.times,
                         order.steps,
                         order.ms,
                         order.factor,
                         order.length,
                         order.seed});
  if (!one)
    return one;
  if (const auto wrong = wrong_phase(*one))
    return error{errc::invalid_config, fmt::format("--when: {}; {}", wrong->what, wrong->instead)};
  return one;
}

std::string describe_order(const cluster_settings& settings, const fault& ordered) {
  std::string places;
  const auto ranks = place_ranks(settings);
  for (const auto& spot : ordered.spots) {
    const auto node = spot.at == conductor_spot ? settings.head_index()
                                                : std::size_t{number(ranks.at(spot.at).node)};
    places += fmt::format(
      "{}{} of node {}", places.empty() ? "" : ", ", name_spot(spot), settings.nodes[node].name);
  }
  // Decorators that are there already need no new epoch.
  const auto since = settings.faults.empty() ? takes_hold(ordered.what) : "at once";
  return fmt::format("{} at {}, {}", to_string(ordered.what), places, since);
}

fault_desk::fault_desk(std::uint32_t self, std::filesystem::path book, std::uint64_t run)
  : self_(self), book_(std::move(book)), run_(run) {}

void fault_desk::add(const std::vector<fault>& faults) {
  if (faults.empty())
    return;
  if (!owner_) {
    if (!book_.empty())
      if (auto made = make_run_folder(book_.parent_path()); !made)
        log::warn("faults: {}", made.error().what);
    owner_ = std::make_unique<compute::fault_injector>(
      self_, std::vector<fault>{}, compute::fault_trace{book_, run_});
    injector_.store(owner_.get(), std::memory_order_release);
  }
  for (const auto& one : faults)
    owner_->add(one);
}

std::unique_ptr<transport::transport>
fault_desk::wrap(std::unique_ptr<transport::transport> wires) const {
  return owner_ ? transport::make_faulty_transport(std::move(wires), *owner_) : std::move(wires);
}

void fault_desk::release() const noexcept {
  if (auto* faults = injector_.load(std::memory_order_acquire))
    faults->release();
}

std::uint64_t fault_desk::made() const noexcept {
  const auto* faults = injector_.load(std::memory_order_acquire);
  return faults ? faults->made() : 0;
}

std::filesystem::path fault_book(const std::filesystem::path& run_folder, const std::string& node) {
  return run_folder.empty() ? std::filesystem::path{} : run_folder / (node + ".faults");
}

} // namespace troupe::actors
