#pragma once
// A cluster as its three state tables see it, small enough to be explored in full: the director,
// the conductor, a pipeline of ranks, and what travels between them. Which phase follows is looked
// up in the tables of the program; what each does then (whom it tells) is written down again here,
// as short as it can be said.
//
// Messages of one sender keep their order, those of several senders come in any. A receiver takes
// the first that it does not hold. Faults (a process dies, a pass fails, a link breaks) come at any
// moment, a bounded number of them.

#include "actors/conductor/conductor_phases.hpp"
#include "actors/director/director_phases.hpp"
#include "actors/rank/rank_phases.hpp"
#include "config/check.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::tests {

inline constexpr std::size_t most_ranks = 3;

/// Parties: ranks 0 ... n - 1, then the conductor, then the director.
inline constexpr std::size_t conductor_party = most_ranks;
inline constexpr std::size_t director_party = most_ranks + 1;
inline constexpr std::size_t parties = most_ranks + 2;

enum class word : std::uint8_t {
  assignment,
  plan,
  fence,
  tokens,
  rows,
  input,
  unit,
  leave,
  finish,
  down,
  hello,
  loaded,
  rewired,
  joined,
  fault,
  output,
  node_lost,
};

/// One message.
struct letter {
  word what{};
  std::uint8_t epoch = 0;
  std::uint8_t step = 0;
};

/// The column of a rank's table that a message belongs to.
actors::rank_input column_of(word what);

/// Whether a rank takes it only in the epoch that it names.
bool has_epoch(word what);

/// What is under way from one party to another, oldest first. Plain bytes: worlds are copied often.
class wire {
public:
  bool empty() const { return count_ == 0; }

  const letter* begin() const { return letters_.data(); }

  const letter* end() const { return letters_.data() + count_; }

  void add(letter what) {
    check(count_ < letters_.size(), "a wire of the model holds what is under way");
    letters_[count_++] = what;
  }

  void erase(std::size_t at) {
    for (; at + 1 < count_; ++at)
      letters_[at] = letters_[at + 1];
    letters_[--count_] = {};
  }

  void clear() { *this = {}; }

private:
  std::array<letter, 10> letters_{};
  std::uint8_t count_ = 0;
};

struct model_limits {
  std::size_t ranks = 2;
  std::uint8_t steps = 2; ///< That are to be committed, each once.
  std::uint8_t faults = 1;
  bool starts_serving = false; ///< In epoch 1, instead of with processes that start.
};

/// One state of the whole.
struct world {
  struct rank {
    actors::rank_phase phase = actors::rank_phase::empty;
    bool alive = false;
    std::uint8_t epoch = 0;
    std::uint8_t step = 0;
    std::uint8_t life = 0; ///< Counts its processes; a hello carries it in place of an epoch.
  };

  std::array<rank, most_ranks> ranks;
  actors::conductor_phase conductor = actors::conductor_phase::waiting;
  std::uint8_t conductor_epoch = 0;
  std::uint8_t committed = 0; ///< A bit a step.
  std::uint8_t in_flight = 0; ///< A bit a step.
  actors::director_phase director = actors::director_phase::gathering;
  std::uint8_t epoch = 0;
  std::uint8_t here = 0;    ///< A bit a rank, as in the next three.
  std::uint8_t greeted = 0; ///< Whose present process the director knows.
  std::uint8_t assigned = 0;
  std::uint8_t loaded = 0;
  std::uint8_t unwired = 0; ///< The conductor has a bit, too.
  std::uint8_t joined = 0;
  std::uint8_t faults_left = 0;
  /// [from][to]; what a rank tells itself is at [rank][rank].
  std::array<std::array<wire, parties>, parties> wires;

  /// All of it as bytes; equal worlds have equal bytes.
  std::string bytes() const;
};

/// What the model came to, over all worlds that can be reached.
struct exploration {
  std::size_t worlds = 0;
  std::size_t transitions = 0;
  std::size_t goals = 0;           ///< Everything is committed, nothing is under way.
  std::vector<std::string> broken; ///< Rules that were broken, the first few, in words.
};

/// Everything that can happen next in a world; rules that are broken by it are told.
void find_moves(const model_limits& limits,
                const world& now,
                const std::function<void(world&&)>& next,
                exploration& told);

exploration explore(const model_limits& limits);

} // namespace troupe::tests
