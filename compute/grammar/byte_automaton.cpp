#include "compute/grammar/byte_automaton.hpp"

#include <algorithm>
#include <set>

namespace troupe::compute {

byte_automaton::byte_automaton(std::shared_ptr<const grammar> rules) : rules_(std::move(rules)) {
  frames_.push_back({}); // of the empty stack
  for (int limit = 0; limit < 2; ++limit) {
    states_.push_back({});
    states_.back().next.fill(nowhere);
  }
  states_[too_many].next.fill(too_many);
  std::vector<place> open = {{rules_->start, 0}};
  std::vector<place> reached;
  start_ = close(open, reached) ? intern(std::move(reached)) : too_many;
}

byte_automaton::stack_id byte_automaton::push(grammar::node_id node, stack_id below) {
  auto [found, fresh] =
    frame_ids_.try_emplace({node, below}, static_cast<stack_id>(frames_.size()));
  if (fresh)
    frames_.push_back({node, below});
  return found->second;
}

bool byte_automaton::close(std::vector<place>& open, std::vector<place>& reached) {
  std::set<place> seen(open.begin(), open.end());
  auto go = [&](place next) {
    if (seen.insert(next).second)
      open.push_back(next);
  };
  while (!open.empty()) {
    if (seen.size() > most_places)
      return false;
    auto at = open.back();
    open.pop_back();
    const auto& node = rules_->nodes[at.node];
    for (auto to : node.jumps)
      go({to, at.callers});
    for (auto [rule, to] : node.calls)
      go({rule, push(to, at.callers)});
    if (node.ends && at.callers != 0)
      go({frames_[at.callers].node, frames_[at.callers].below});
    if (!node.bytes.empty() || (node.ends && at.callers == 0))
      reached.push_back(at);
  }
  return true;
}

byte_automaton::state byte_automaton::intern(std::vector<place> reached) {
  if (reached.empty())
    return nowhere;
  std::sort(reached.begin(), reached.end());
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  if (auto found = state_ids_.find(reached); found != state_ids_.end())
    return found->second;
  if (states_.size() >= most_states)
    return too_many;
  auto made = static_cast<state>(states_.size());
  states_.emplace_back();
  states_.back().next.fill(unknown);
  states_.back().accepts = std::any_of(reached.begin(), reached.end(), [&](const place& at) {
    return at.callers == 0 && rules_->nodes[at.node].ends;
  });
  states_.back().places = reached;
  state_ids_.emplace(std::move(reached), made);
  return made;
}

byte_automaton::state byte_automaton::keep_only(state one) {
  auto places = std::move(states_[one].places);
  states_.resize(2); // those of nowhere and too_many
  state_ids_.clear();
  return one <= too_many ? one : intern(std::move(places));
}

byte_automaton::state byte_automaton::calculate(state from, std::uint8_t byte) {
  std::vector<place> open, reached;
  for (const auto& at : states_[from].places)
    for (auto [low, high, to] : rules_->nodes[at.node].bytes)
      if (byte >= low && byte <= high)
        open.push_back({to, at.callers});
  return close(open, reached) ? intern(std::move(reached)) : too_many;
}

byte_automaton::state byte_automaton::step(state from, std::uint8_t byte) {
  auto known = states_[from].next[byte];
  if (known != unknown)
    return known;
  auto made = calculate(from, byte); // may move states_
  return states_[from].next[byte] = made;
}

} // namespace troupe::compute
