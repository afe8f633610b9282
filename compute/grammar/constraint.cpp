#include "compute/grammar/constraint.hpp"

#include "compute/grammar/json_schema.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::compute {

constraint::constraint(std::shared_ptr<const grammar> rules,
                       std::shared_ptr<const token_trie> words,
                       std::vector<token_id> ends)
  : words_(std::move(words)), automaton_(std::move(rules)), ends_(std::move(ends)),
    state_(automaton_.start()) {}

result<std::vector<std::uint64_t>> constraint::mask_of(byte_automaton::state from) {
  auto vocabulary = words_->vocabulary();
  for (auto end : ends_)
    vocabulary = std::max<std::size_t>(vocabulary, end + std::size_t{1});
  std::vector<std::uint64_t> mask((vocabulary + 63) / 64);
  auto allow = [&](token_id token) { mask[token / 64] |= std::uint64_t{1} << (token % 64); };
  std::vector<std::pair<std::uint32_t, byte_automaton::state>> above; // where it is left, state
  bool any = false;
  const auto& nodes = words_->nodes();
  auto now = from;
  for (std::uint32_t at = 0; at < nodes.size();) {
    while (!above.empty() && above.back().first == at) {
      now = above.back().second;
      above.pop_back();
    }
    const auto& node = nodes[at];
    auto next = automaton_.step(now, node.byte);
    if (next == byte_automaton::too_many)
      return error{errc::overloaded, "the grammar has too many alternatives at one place"};
    if (next == byte_automaton::nowhere) {
      at = node.after;
      continue;
    }
    for (std::uint32_t which = 0; which < node.tokens; ++which)
      allow(words_->tokens_of(node)[which]);
    any |= node.tokens > 0;
    above.emplace_back(node.after, now);
    now = next;
    ++at;
  }
  if (automaton_.accepts(from))
    for (auto end : ends_)
      allow(end);
  if (!any && !automaton_.accepts(from))
    return error{errc::unsupported, "the vocabulary has no token with which the text can go on"};
  return mask;
}

result<std::span<const std::uint64_t>> constraint::allowed() {
  if (ended_)
    return error{errc::contract_violation, "the answer has ended; nothing may follow"};
  // Answers of texts with a bounded length are in a new state with every character.
  if (masks_.size() >= most_masks || automaton_.states() >= most_known_states) {
    state_ = automaton_.keep_only(state_);
    masks_.clear();
  }
  auto known = masks_.find(state_);
  if (known == masks_.end()) {
    auto made = mask_of(state_);
    if (!made)
      return made.error();
    known = masks_.emplace(state_, std::move(*made)).first;
  }
  return std::span<const std::uint64_t>(known->second);
}

result<void> constraint::accept(token_id token) {
  auto refused = [&] {
    return error{errc::contract_violation,
                 fmt::format("token {} does not follow the grammar here", token)};
  };
  if (ended_)
    return refused();
  if (std::find(ends_.begin(), ends_.end(), token) != ends_.end() && complete()) {
    ended_ = true;
    return {};
  }
  auto text = words_->text(token);
  auto reached = state_;
  for (char byte : text)
    reached = automaton_.step(reached, static_cast<std::uint8_t>(byte));
  if (text.empty() || reached == byte_automaton::nowhere || reached == byte_automaton::too_many)
    return refused();
  state_ = reached;
  return {};
}

result<std::unique_ptr<constraint>> constraint_maker::make(std::string_view schema,
                                                           std::vector<token_id> ends) {
  auto rules = compile_schema(schema);
  if (!rules)
    return rules.error();
  const std::lock_guard lock(mutex_);
  if (!trie_) {
    auto made = token_trie::of(*words_);
    if (!made)
      return made.error();
    trie_ = std::move(*made);
  }
  return std::make_unique<constraint>(std::move(*rules), trie_, std::move(ends));
}

} // namespace troupe::compute
