#pragma once
// Answers that follow a grammar: which tokens may come next.

#include "compute/grammar/byte_automaton.hpp"
#include "compute/grammar/token_trie.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::compute {

/// One answer's place in a grammar. Its state is a function of the answer's tokens alone: whoever
/// accepts the same tokens allows the same ones next. One thread at a time.
class constraint {
public:
  /// `ends` are the tokens that end an answer, which are allowed once the text is complete.
  constraint(std::shared_ptr<const grammar> rules,
             std::shared_ptr<const token_trie> words,
             std::vector<token_id> ends);

  /// One bit a token, the lowest first, as sampling_rules::allowed. At least one is set. Calculated
  /// once for each state that is met: a walk through the vocabulary, and a look-up afterwards.
  /// overloaded: the grammar is too ambiguous here.
  result<std::span<const std::uint64_t>> allowed();

  /// contract_violation: the token is not one that allowed() has.
  result<void> accept(token_id token);

  /// The text may end here.
  bool complete() const { return automaton_.accepts(state_); }

private:
  static constexpr std::size_t most_masks = 256, most_known_states = 4096;

  result<std::vector<std::uint64_t>> mask_of(byte_automaton::state from);

  std::shared_ptr<const token_trie> words_;
  byte_automaton automaton_;
  std::vector<token_id> ends_;
  byte_automaton::state state_;
  bool ended_ = false;
  std::unordered_map<byte_automaton::state, std::vector<std::uint64_t>> masks_;
};

/// Makes constraints for the requests of one process. Any thread.
class constraint_maker {
public:
  explicit constraint_maker(std::shared_ptr<const tokenizer> words) : words_(std::move(words)) {}

  /// invalid_argument, unsupported: as compile_schema. unsupported: a tokenizer that joins its
  /// tokens with separators.
  result<std::unique_ptr<constraint>> make(std::string_view schema, std::vector<token_id> ends);

private:
  std::shared_ptr<const tokenizer> words_;
  std::mutex mutex_;
  std::shared_ptr<const token_trie> trie_; ///< Made for the first constraint.
};

} // namespace troupe::compute
