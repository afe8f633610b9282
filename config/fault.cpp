#include "config/fault.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace troupe {

namespace {

constexpr std::array<std::string_view, fault_actions> names{"kill",
                                                            "stop",
                                                            "slow",
                                                            "drop",
                                                            "delay",
                                                            "duplicate",
                                                            "reorder",
                                                            "truncate",
                                                            "corrupt",
                                                            "cut",
                                                            "refuse_allocation",
                                                            "nan",
                                                            "wrong_length",
                                                            "wrong_operation",
                                                            "fail_collective",
                                                            "fail_transport"};

bool meets_a_frame(fault_action what) {
  return what >= fault_action::drop && what <= fault_action::cut;
}

bool meets_a_collective(fault_action what) {
  return what >= fault_action::wrong_length && what <= fault_action::fail_collective;
}

bool meets_the_device(fault_action what) {
  return what == fault_action::refuse_allocation || what == fault_action::nan;
}

bool meets_a_thread(fault_action what) {
  return what <= fault_action::slow;
}

/// Whether an action can happen at such a moment.
bool fits(fault_action what, const fault_moment& when) {
  switch (when.event) {
  case fault_event::step:
    return !when.layer || meets_a_thread(what) || meets_a_collective(what)
           || what == fault_action::nan;
  case fault_event::message: return !meets_a_collective(what) && !meets_the_device(what);
  case fault_event::call:
    return meets_a_collective(what) || what == fault_action::refuse_allocation
           || what == fault_action::fail_transport;
  case fault_event::phase: return meets_a_thread(what);
  case fault_event::load: return meets_a_thread(what) || what == fault_action::refuse_allocation;
  }
  return false;
}

std::string_view moments_of(fault_action what) {
  if (meets_a_thread(what))
    return "a step, a layer of it, a message, a phase or the load would work";
  if (meets_a_frame(what))
    return "a step or a message would work";
  if (meets_a_collective(what))
    return "a step, a layer of it or a call would work";
  if (what == fault_action::nan)
    return "a step or a layer of it would work";
  if (what == fault_action::refuse_allocation)
    return "a step, a call or the load would work";
  return "a step, a message or a call would work";
}

/// The field that is wrong, and why.
struct complaint {
  std::string_view field;
  fault_mistake why;
};

/// What can be said once place and moment are read.
std::optional<complaint>
contradiction(const cluster_settings& settings, const fault& made, const fault_place& place) {
  const auto name = to_string(made.what);
  if (!fits(made.what, made.when))
    return complaint{
      "when", {fmt::format("{} has no such moment", name), std::string{moments_of(made.what)}}};
  const bool is_link = place.spots.front().to.has_value();
  const bool on_wires = meets_a_frame(made.what) || made.what == fault_action::fail_transport;
  if (is_link && !on_wires)
    return complaint{"where",
                     {fmt::format("{} does not meet a link", name), "a rank or a node would work"}};
  const bool at_conductor = place.spots.front().at == conductor_spot;
  if (at_conductor && !on_wires && !meets_a_thread(made.what))
    return complaint{"where", {fmt::format("the conductor has no {}", name), "a rank would work"}};
  if (at_conductor && (made.when.layer || made.when.event == fault_event::load))
    return complaint{
      "when",
      {"the conductor computes and loads no layers", "a step, a message or a phase would work"}};
  if (meets_a_collective(made.what) && settings.parallel.tensor < 2)
    return complaint{
      "what",
      {fmt::format("{} never happens: parallel.tensor is 1, no rank has a group", name),
       "parallel.tensor = 2 has collectives"}};
  if (made.what == fault_action::wrong_length && !length_of(made.length, 8))
    return complaint{
      "length",
      {fmt::format("\"{}\" is no length", made.length), "\"n-2\", \"n+2\" or \"10n\" would work"}};
  return std::nullopt;
}

std::variant<fault, complaint> read_one(const cluster_settings& settings,
                                        const fault_settings& wanted) {
  fault made;
  const auto found = std::find(names.begin(), names.end(), wanted.what);
  if (found == names.end())
    return complaint{"what",
                     {fmt::format("\"{}\" is no fault", wanted.what),
                      fmt::format("one of {}", fmt::join(names, ", "))}};
  made.what = static_cast<fault_action>(found - names.begin());
  auto place = read_place(settings, wanted);
  if (auto* mistake = std::get_if<fault_mistake>(&place))
    return complaint{"where", std::move(*mistake)};
  auto moment = read_moment(wanted.when);
  if (auto* mistake = std::get_if<fault_mistake>(&moment))
    return complaint{"when", std::move(*mistake)};
  made.when = std::get<fault_moment>(std::move(moment));
  made.spots = std::get<fault_place>(place).spots;
  made.whole_process = made.what == fault_action::stop && std::get<fault_place>(place).is_node;
  made.times = wanted.times;
  made.steps = wanted.steps;
  made.ms = wanted.ms;
  made.factor = wanted.factor;
  made.length = wanted.length;
  made.seed = wanted.seed;
  if (auto wrong = contradiction(settings, made, std::get<fault_place>(place)))
    return std::move(*wrong);
  return made;
}

} // namespace

std::string_view to_string(fault_action what) noexcept {
  return names[static_cast<std::size_t>(what)];
}

std::vector<std::string_view> fault_action_names() {
  return {names.begin(), names.end()};
}

std::vector<fault> read_faults(const cluster_settings& settings, mistakes& found) {
  std::vector<fault> all;
  for (std::size_t i = 0; i < settings.faults.size(); ++i) {
    auto one = read_one(settings, settings.faults[i]);
    if (const auto* wrong = std::get_if<complaint>(&one)) {
      found.add(settings.point_at(
        fmt::format("fault[{}].{}", i, wrong->field), wrong->why.what, wrong->why.instead));
      continue;
    }
    all.push_back(std::get<fault>(std::move(one)));
    all.back().name = fmt::format("fault[{}]", i);
  }
  return all;
}

result<fault> read_fault(const cluster_settings& settings, const fault_settings& wanted) {
  auto one = read_one(settings, wanted);
  if (const auto* wrong = std::get_if<complaint>(&one))
    return error{errc::invalid_config,
                 fmt::format("--{}: {}; {}", wrong->field, wrong->why.what, wrong->why.instead)};
  auto made = std::get<fault>(std::move(one));
  made.name = "injected";
  made.injected = true;
  return made;
}

std::optional<std::uint64_t> length_of(std::string_view length, std::uint64_t n) {
  if (length.ends_with("n")) {
    const auto factor = number_of(length.substr(0, length.size() - 1));
    return factor && *factor <= 1000 ? std::optional{*factor * n} : std::nullopt;
  }
  const auto amount =
    length.size() > 2 && length[0] == 'n' ? number_of(length.substr(2)) : std::nullopt;
  if (!amount || (length[1] != '+' && length[1] != '-'))
    return std::nullopt;
  return length[1] == '+' ? n + *amount : n - std::min(n, *amount);
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t draw(std::uint64_t seed, std::uint64_t counter) noexcept {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15 * (counter + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

} // namespace troupe
