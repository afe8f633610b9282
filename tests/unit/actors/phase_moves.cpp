#include "tests/unit/actors/phase_model.hpp"

namespace troupe::tests {

using actors::conductor_input;
using actors::conductor_phase;
using actors::conductor_phases;
using actors::director_input;
using actors::director_phase;
using actors::director_phases;
using actors::rank_input;
using actors::rank_phase;
using actors::rank_phases;
using actors::verdict;

namespace {

constexpr std::uint8_t bit(std::size_t i) {
  return static_cast<std::uint8_t>(1u << i);
}

/// One world and what can happen in it next.
class stage {
public:
  using found = std::function<void(world&&)>;

  stage(const model_limits& limits, const world& now, const found& next, exploration& told)
    : limits_(limits), now_(now), next_(next), told_(told) {}

  void run() {
    for (std::size_t i = 0; i < limits_.ranks; ++i) {
      move_rank(i);
      hurt_rank(i);
    }
    move_conductor();
    move_director();
  }

private:
  void broken(const std::string& what) {
    if (told_.broken.size() < 5)
      told_.broken.push_back(what);
  }

  std::uint8_t all() const { return static_cast<std::uint8_t>(bit(limits_.ranks) - 1); }

  /// Offers the first message of a wire that `takes` does not hold to `act`, in a copy of the
  /// world.
  template <class Holds, class Act>
  void deliver(std::size_t from, std::size_t to, Holds holds, Act act) {
    std::size_t place = 0;
    for (const auto& what : now_.wires[from][to]) {
      if (holds(what)) {
        ++place;
        continue;
      }
      auto copy = now_;
      copy.wires[from][to].erase(place);
      act(copy, what);
      next_(std::move(copy));
      return;
    }
  }

  static void send(world& w, std::size_t from, std::size_t to, letter what) {
    if (from == director_party && to < most_ranks && (w.greeted & bit(to)) == 0)
      return; // To a process that is gone: the director does not know the next one yet.
    w.wires[from][to].add(what);
  }

  /// After a fence a party's wires are made anew: what was under way to it over the old ones, and
  /// the news that they broke, is gone. Control messages have wires of their own.
  static void renew_wires(world& w, std::size_t to) {
    for (std::size_t from = 0; from < director_party; ++from)
      if (from != to)
        w.wires[from][to].clear();
  }

  // -- ranks --------------------------------------------------------------------------------------

  bool in_epoch(const world::rank& one, std::uint8_t epoch) const {
    return one.alive && one.epoch == epoch && one.phase >= rank_phase::joining
           && one.phase <= rank_phase::leaving;
  }

  bool can_hear_conductor(std::uint8_t epoch) const {
    return now_.conductor_epoch == epoch && now_.conductor != conductor_phase::waiting;
  }

  /// Whether a neighbour that was not heard yet still may be: its plan is under way.
  bool comes(std::size_t party, std::uint8_t epoch) const {
    for (const auto& one : now_.wires[director_party][party])
      if (one.what == word::plan && one.epoch == epoch)
        return true;
    return party == conductor_party ? can_hear_conductor(epoch)
                                    : in_epoch(now_.ranks[party], epoch);
  }

  std::vector<std::size_t> neighbours(std::size_t i) const {
    std::vector<std::size_t> all_of_them{conductor_party};
    if (i > 0)
      all_of_them.push_back(i - 1);
    if (i + 1 < limits_.ranks)
      all_of_them.push_back(i + 1);
    return all_of_them;
  }

  bool hears(std::size_t party, std::uint8_t epoch) const {
    return party == conductor_party ? can_hear_conductor(epoch)
                                    : in_epoch(now_.ranks[party], epoch);
  }

  void give_up(world& w, std::size_t i, rank_input why) {
    auto& one = w.ranks[i];
    const auto& cell = rank_phases.at(one.phase, why);
    if (cell.what != verdict::go)
      return;
    one.phase = cell.next;
    send(w, i, director_party, {word::fault, one.epoch, 0});
  }

  void move_rank(std::size_t i) {
    const auto& one = now_.ranks[i];
    if (!one.alive) {
      auto copy = now_; // Somebody starts it again.
      copy.ranks[i] = {rank_phase::empty, true, 0, 0, one.life};
      send(copy, i, director_party, {word::hello, one.life, 0});
      next_(std::move(copy));
      return;
    }
    for (std::size_t from = 0; from < parties; ++from)
      deliver(
        from,
        i,
        [&](const letter& what) { return rank_holds(i, what); },
        [&](world& w, const letter& what) { rank_takes(w, i, what); });
    if (one.phase == rank_phase::loading) {
      auto copy = now_;
      copy.ranks[i].phase = rank_phases.at(one.phase, rank_input::load_succeeded).next;
      send(copy, i, director_party, {word::loaded, 0, 0});
      next_(std::move(copy));
    }
    if (one.phase == rank_phase::joining)
      meet(i);
  }

  void meet(std::size_t i) {
    const auto epoch = now_.ranks[i].epoch;
    bool all_heard = true;
    bool hopeless = false;
    for (const auto other : neighbours(i)) {
      all_heard = all_heard && hears(other, epoch);
      hopeless = hopeless || !comes(other, epoch);
    }
    auto copy = now_;
    if (all_heard) {
      copy.ranks[i].phase = rank_phases.at(rank_phase::joining, rank_input::peers_heard).next;
      send(copy, i, director_party, {word::joined, epoch, 0});
      next_(std::move(copy));
    } else if (hopeless) { // Its deadline passes.
      give_up(copy, i, rank_input::peer_down);
      next_(std::move(copy));
    }
  }

  bool rank_holds(std::size_t i, const letter& what) const {
    const auto& one = now_.ranks[i];
    if (what.what == word::assignment)
      return false; // The node takes it.
    // What a rank told itself is in its mailbox before anything of the next epoch.
    if (what.what == word::plan && !now_.wires[i][i].empty())
      return true;
    if (has_epoch(what.what) && what.epoch != one.epoch)
      return waits_for_plan(one.phase, column_of(what.what));
    return rank_phases.at(one.phase, column_of(what.what)).what == verdict::hold;
  }

  void rank_takes(world& w, std::size_t i, const letter& what) {
    auto& one = w.ranks[i];
    if (what.what == word::assignment) { // Its node makes a new rank, whatever was there.
      one = {rank_phases.at(rank_phase::empty, rank_input::assignment).next, true, 0, 0, one.life};
      w.wires[i][i].clear();
      return;
    }
    if (has_epoch(what.what) && what.epoch != one.epoch)
      return;
    const auto& cell = rank_phases.at(one.phase, column_of(what.what));
    if (cell.what == verdict::refuse)
      broken("rank " + std::to_string(i) + " refuses "
             + std::string{rank_phases.name(column_of(what.what))} + " while "
             + std::string{rank_phases.name(one.phase)});
    if (cell.what != verdict::go)
      return;
    one.phase = cell.next;
    rank_acts(w, i, what);
  }

  void rank_acts(world& w, std::size_t i, const letter& what) {
    auto& one = w.ranks[i];
    switch (what.what) {
    case word::plan: one.epoch = what.epoch; break;
    case word::tokens:
      one.step = what.step;
      send(w, i, i, {word::unit, 0, what.step});
      break;
    case word::rows: one.step = what.step; break;
    case word::input:
      if (what.step != one.step)
        broken("the rows of another step arrive");
      send(w, i, i, {word::unit, 0, what.step});
      break;
    case word::unit: send(w, i, i, {word::leave, 0, what.step}); break;
    case word::leave: send(w, i, i, {word::finish, 0, what.step}); break;
    case word::finish:
      if (what.step != one.step)
        broken("a pass that was abandoned is finished");
      if (i + 1 < limits_.ranks)
        send(w, i, i + 1, {word::input, one.epoch, one.step});
      else
        send(w, i, conductor_party, {word::output, one.epoch, one.step});
      break;
    case word::fence:
      one.epoch = 0;
      one.step = 0;
      renew_wires(w, i);
      send(w, i, director_party, {word::rewired, 0, 0});
      break;
    default: send(w, i, director_party, {word::fault, one.epoch, 0}); break;
    }
  }

  // -- faults -------------------------------------------------------------------------------------

  void hurt_rank(std::size_t i) {
    const auto& one = now_.ranks[i];
    if (now_.faults_left == 0 || !one.alive)
      return;
    for (const bool frames_arrive : {true, false}) {
      auto copy = now_;
      --copy.faults_left;
      kill(copy, i, frames_arrive);
      next_(std::move(copy));
    }
    if (rank_phases.at(one.phase, rank_input::pass_failed).what == verdict::go) {
      auto copy = now_;
      --copy.faults_left;
      give_up(copy, i, rank_input::pass_failed);
      next_(std::move(copy));
    }
    if (one.phase >= rank_phase::joining && one.phase <= rank_phase::leaving)
      for (const auto other : neighbours(i)) {
        auto copy = now_; // The link between the two breaks; both hear of it.
        --copy.faults_left;
        send(copy, other, i, {word::down, 0, 0});
        send(copy, i, other, {word::down, 0, 0});
        next_(std::move(copy));
      }
  }

  void kill(world& w, std::size_t i, bool frames_arrive) {
    w.ranks[i] = {rank_phase::empty, false, 0, 0, static_cast<std::uint8_t>(w.ranks[i].life + 1)};
    w.greeted &= static_cast<std::uint8_t>(~bit(i));
    for (std::size_t from = 0; from < parties; ++from)
      w.wires[from][i].clear();
    for (std::size_t to = 0; to < parties; ++to) {
      if (to == i)
        continue;
      if (!frames_arrive)
        w.wires[i][to].clear();
      if (to == director_party)
        send(w, i, to, {word::node_lost, 0, 0});
      else if (to == conductor_party || (to < limits_.ranks && (to + 1 == i || to == i + 1)))
        send(w, i, to, {word::down, 0, 0});
    }
  }

  // -- conductor ----------------------------------------------------------------------------------

  void move_conductor() {
    for (std::size_t from = 0; from < parties; ++from)
      deliver(
        from,
        conductor_party,
        [](const letter&) { return false; },
        [&](world& w, const letter& what) { conductor_takes(w, what); });
    const auto epoch = now_.conductor_epoch;
    if (now_.conductor == conductor_phase::joining) {
      bool all_heard = true;
      bool hopeless = false;
      for (std::size_t i = 1; i < limits_.ranks;
           ++i) { // Rank 0 is of its process: no wire to hear.
        all_heard = all_heard && hears(i, epoch);
        hopeless = hopeless || !comes(i, epoch);
      }
      auto copy = now_;
      if (all_heard) {
        conductor_steps(copy, conductor_input::peers_heard);
        send(copy, conductor_party, director_party, {word::joined, epoch, 0});
        next_(std::move(copy));
      } else if (hopeless) {
        lose_epoch(copy, conductor_input::peer_down);
        next_(std::move(copy));
      }
    }
    if (now_.conductor == conductor_phase::serving)
      plan_step();
  }

  bool conductor_steps(world& w, conductor_input input) {
    const auto& cell = conductor_phases.at(w.conductor, input);
    if (cell.what == verdict::refuse)
      broken("the conductor refuses " + std::string{conductor_phases.name(input)} + " while "
             + std::string{conductor_phases.name(w.conductor)});
    if (cell.what == verdict::go)
      w.conductor = cell.next;
    return cell.what == verdict::go;
  }

  void lose_epoch(world& w, conductor_input input) {
    if (!conductor_steps(w, input))
      return;
    w.in_flight = 0;
    send(w, conductor_party, director_party, {word::fault, w.conductor_epoch, 0});
  }

  /// The first step that is neither committed nor under way, as many as there are stages at once.
  void plan_step() {
    std::size_t under_way = 0;
    for (std::size_t s = 0; s < limits_.steps; ++s)
      under_way += (now_.in_flight & bit(s)) != 0 ? 1 : 0;
    if (under_way >= limits_.ranks)
      return;
    for (std::uint8_t s = 0; s < limits_.steps; ++s) {
      if (((now_.committed | now_.in_flight) & bit(s)) != 0)
        continue;
      auto copy = now_;
      copy.in_flight |= bit(s);
      const auto number = static_cast<std::uint8_t>(s + 1);
      for (std::size_t i = 0; i < limits_.ranks; ++i)
        send(copy,
             conductor_party,
             i,
             {i == 0 ? word::tokens : word::rows, now_.conductor_epoch, number});
      next_(std::move(copy));
      return;
    }
  }

  void conductor_takes(world& w, const letter& what) {
    switch (what.what) {
    case word::plan:
      if (conductor_steps(w, conductor_input::epoch_plan))
        w.conductor_epoch = what.epoch;
      break;
    case word::fence:
      if (what.epoch != w.conductor_epoch || !conductor_steps(w, conductor_input::fence))
        break;
      w.in_flight = 0;
      w.conductor_epoch = 0;
      renew_wires(w, conductor_party);
      send(w, conductor_party, director_party, {word::rewired, 0, 0});
      break;
    case word::output:
      if (what.epoch == w.conductor_epoch && conductor_steps(w, conductor_input::step_output)
          && w.conductor == conductor_phase::serving)
        commit(w, what.step);
      break;
    default: lose_epoch(w, conductor_input::peer_down); break;
    }
  }

  void commit(world& w, std::uint8_t step) {
    const auto which = bit(step - 1u);
    if ((w.committed & which) != 0)
      broken("step " + std::to_string(step) + " is committed twice");
    if ((w.in_flight & which) == 0)
      broken("step " + std::to_string(step) + " is committed though it is not under way");
    w.committed |= which;
    w.in_flight &= static_cast<std::uint8_t>(~which);
  }

  // -- director -----------------------------------------------------------------------------------

  bool director_steps(world& w, director_input input) {
    const auto& cell = director_phases.at(w.director, input);
    if (cell.what == verdict::go)
      w.director = cell.next;
    return cell.what == verdict::go;
  }

  void move_director() {
    for (std::size_t from = 0; from < parties; ++from)
      deliver(
        from,
        director_party,
        [](const letter&) { return false; },
        [&](world& w, const letter& what) { director_takes(w, from, what); });
    if (now_.director == director_phase::gathering && now_.here == all()) {
      auto copy = now_;
      director_steps(copy, director_input::all_here);
      for (std::size_t i = 0; i < limits_.ranks; ++i)
        if (((copy.loaded | copy.assigned) & bit(i)) == 0)
          send(copy, director_party, i, {word::assignment, 0, 0});
      copy.assigned = all();
      link_if_loaded(copy);
      next_(std::move(copy));
    }
  }

  void director_takes(world& w, std::size_t from, const letter& what) {
    const auto who = static_cast<std::uint8_t>(~bit(from));
    switch (what.what) {
    case word::hello:
      if (director_phases.at(w.director, director_input::hello).what != verdict::go) {
        if (what.epoch == w.ranks[from].life) // Refused: it ends, and is started again.
          w.ranks[from] = {rank_phase::empty, false, 0, 0, what.epoch};
        break;
      }
      director_steps(w, director_input::hello);
      w.here |= bit(from);
      if (what.epoch == w.ranks[from].life)
        w.greeted |= bit(from);
      w.loaded &= who;
      w.assigned &= who;
      break;
    case word::loaded:
      if (director_steps(w, director_input::rank_loaded))
        w.loaded |= bit(from);
      link_if_loaded(w);
      break;
    case word::rewired:
      w.unwired &= who;
      link_if_loaded(w);
      break;
    case word::joined:
      if (what.epoch != w.epoch || !director_steps(w, director_input::rank_joined))
        break;
      w.joined |= bit(from);
      if (w.joined == (all() | bit(conductor_party)))
        director_steps(w, director_input::all_joined);
      break;
    case word::fault:
      if (what.epoch == w.epoch && director_steps(w, director_input::epoch_lost))
        fence(w);
      break;
    default: lose_node(w, from); break;
    }
  }

  void lose_node(world& w, std::size_t i) {
    w.here &= static_cast<std::uint8_t>(~bit(i));
    w.loaded &= static_cast<std::uint8_t>(~bit(i));
    w.assigned &= static_cast<std::uint8_t>(~bit(i));
    w.unwired &= static_cast<std::uint8_t>(~bit(i));
    const bool ran = w.director == director_phase::linking || w.director == director_phase::serving;
    if (director_steps(w, director_input::node_lost) && ran)
      fence(w);
  }

  void fence(world& w) {
    for (std::size_t i = 0; i < limits_.ranks; ++i)
      if ((w.here & bit(i)) != 0)
        send(w, director_party, i, {word::fence, w.epoch, 0});
    send(w, director_party, conductor_party, {word::fence, w.epoch, 0});
    w.unwired = w.loaded | bit(conductor_party);
  }

  void link_if_loaded(world& w) {
    if (w.director != director_phase::loading || w.unwired != 0 || w.loaded != all())
      return;
    director_steps(w, director_input::all_loaded);
    ++w.epoch;
    w.joined = 0;
    for (std::size_t i = 0; i < limits_.ranks; ++i)
      send(w, director_party, i, {word::plan, w.epoch, 0});
    send(w, director_party, conductor_party, {word::plan, w.epoch, 0});
  }

  const model_limits& limits_;
  const world& now_;
  const found& next_;
  exploration& told_;
};

} // namespace

void find_moves(const model_limits& limits,
                const world& now,
                const std::function<void(world&&)>& next,
                exploration& told) {
  stage{limits, now, next, told}.run();
}

} // namespace troupe::tests
