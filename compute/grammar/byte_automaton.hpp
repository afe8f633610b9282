#pragma once
// A grammar at work: what may come after the bytes that were read.

#include "compute/grammar/grammar.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe::compute {

/// Reads bytes by a grammar, all of its alternatives at once. A state is the set of places in which
/// the grammar may be, each a node with the callers that wait for it; states are numbered as they
/// are met, and each step from one to the next is calculated once. One thread at a time.
class byte_automaton {
public:
  using state = std::uint32_t;

  static constexpr state nowhere = 0;  ///< No text goes on like this.
  static constexpr state too_many = 1; ///< A limit: more than most_places or most_states.

  static constexpr std::size_t most_places = 2048;
  static constexpr std::size_t most_states = std::size_t{1} << 16;

  explicit byte_automaton(std::shared_ptr<const grammar> rules);

  state start() const noexcept { return start_; }

  state step(state from, std::uint8_t byte);

  /// The text may end here.
  bool accepts(state at) const { return states_[at].accepts; }

  /// Forgets all other states, whose numbers mean nothing afterwards. The new number of this one.
  state keep_only(state one);

  std::size_t states() const noexcept { return states_.size(); }

private:
  using stack_id = std::uint32_t; ///< 0: empty.

  /// A node that reads bytes, or ends the text, and who waits for it.
  struct place {
    grammar::node_id node;
    stack_id callers;

    auto operator<=>(const place&) const = default;
  };

  struct frame {
    grammar::node_id node; ///< Where the caller goes on.
    stack_id below;

    auto operator<=>(const frame&) const = default;
  };

  static constexpr state unknown = static_cast<state>(-1);

  struct known_state {
    std::vector<place> places;
    std::array<state, 256> next;
    bool accepts = false;
  };

  stack_id push(grammar::node_id node, stack_id below);
  state intern(std::vector<place> reached);
  /// Adds the places that are reached from `from` without a byte. False: too many.
  bool close(std::vector<place>& open, std::vector<place>& reached);
  state calculate(state from, std::uint8_t byte);

  std::shared_ptr<const grammar> rules_;
  std::vector<frame> frames_;
  std::map<frame, stack_id> frame_ids_;
  std::vector<known_state> states_;
  std::map<std::vector<place>, state> state_ids_;
  state start_ = nowhere;
};

} // namespace troupe::compute
