#include "compute/grammar/grammar_builder.hpp"

#include <algorithm>
#include <utility>

namespace troupe::compute {

grammar_builder::node_id grammar_builder::node() {
  if (!full())
    made_.nodes.emplace_back();
  return static_cast<node_id>(made_.nodes.size() - 1);
}

void grammar_builder::byte(node_id from, char one, node_id to) {
  bytes(from, static_cast<std::uint8_t>(one), static_cast<std::uint8_t>(one), to);
}

void grammar_builder::bytes(node_id from, std::uint8_t low, std::uint8_t high, node_id to) {
  if (!full())
    made_.nodes[from].bytes.push_back({low, high, to});
}

void grammar_builder::jump(node_id from, node_id to) {
  if (!full())
    made_.nodes[from].jumps.push_back(to);
}

void grammar_builder::call(node_id from, node_id rule, node_id to) {
  if (!full())
    made_.nodes[from].calls.push_back({rule, to});
}

void grammar_builder::text(node_id from, std::string_view all, node_id to) {
  for (std::size_t at = 0; at + 1 < all.size(); ++at) {
    auto next = node();
    byte(from, all[at], next);
    from = next;
  }
  if (all.empty())
    jump(from, to);
  else
    byte(from, all.back(), to);
}

void grammar_builder::texts(node_id from, std::vector<std::string> all, node_id to) {
  std::sort(all.begin(), all.end());
  std::vector<node_id> path = {from}; // after each byte of the last text
  std::string_view last;
  for (const auto& one : all) {
    auto differs = std::mismatch(one.begin(), one.end(), last.begin(), last.end());
    path.resize(static_cast<std::size_t>(differs.first - one.begin()) + 1);
    for (std::size_t at = path.size() - 1; at < one.size() && !full(); ++at) {
      auto next = node();
      byte(path.back(), one[at], next);
      path.push_back(next);
    }
    jump(path.back(), to);
    if (full())
      return;
    last = one;
  }
}

bool grammar_builder::has_left_recursion() const {
  // Rules of JSON read a byte before they end, so that what follows a call starts behind one.
  enum class colour : std::uint8_t { fresh, open, done };
  std::vector<colour> colours(made_.nodes.size(), colour::fresh);

  struct visit {
    node_id node;
    std::size_t edge;
  };

  for (node_id root = 0; root < made_.nodes.size(); ++root) {
    if (colours[root] != colour::fresh)
      continue;
    std::vector<visit> path = {{root, 0}};
    colours[root] = colour::open;
    while (!path.empty()) {
      auto& [at, edge] = path.back();
      const auto& from = made_.nodes[at];
      if (edge == from.jumps.size() + from.calls.size()) {
        colours[at] = colour::done;
        path.pop_back();
        continue;
      }
      auto to =
        edge < from.jumps.size() ? from.jumps[edge] : from.calls[edge - from.jumps.size()].rule;
      ++edge;
      if (colours[to] == colour::open)
        return true;
      if (colours[to] == colour::fresh) {
        colours[to] = colour::open;
        path.push_back({to, 0});
      }
    }
  }
  return false;
}

bool grammar_builder::prune(node_id start) {
  std::vector<char> finite(made_.nodes.size());
  auto leads_out = [&](const grammar::node& node) {
    for (const auto& edge : node.bytes)
      if (finite[edge.to])
        return true;
    for (auto to : node.jumps)
      if (finite[to])
        return true;
    for (auto [rule, to] : node.calls)
      if (finite[rule] && finite[to])
        return true;
    return node.ends;
  };
  for (bool grew = true; grew;) { // backwards: nodes are made from front to back
    grew = false;
    for (auto at = made_.nodes.size(); at-- > 0;)
      if (!finite[at] && leads_out(made_.nodes[at]))
        finite[at] = grew = true;
  }
  for (auto& node : made_.nodes) {
    std::erase_if(node.bytes, [&](const auto& edge) { return !finite[edge.to]; });
    std::erase_if(node.jumps, [&](auto to) { return !finite[to]; });
    std::erase_if(node.calls,
                  [&](const auto& edge) { return !finite[edge.rule] || !finite[edge.to]; });
  }
  return finite[start] != 0;
}

grammar grammar_builder::take(node_id start) {
  made_.start = start;
  return std::move(made_);
}

} // namespace troupe::compute
