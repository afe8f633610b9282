#include "tests/unit/actors/phase_model.hpp"

#include <deque>
#include <unordered_map>

namespace troupe::tests {

namespace {

bool is_goal(const world& w, const model_limits& limits) {
  if (w.committed + 1u != 1u << limits.steps || w.director != actors::director_phase::serving)
    return false;
  for (const auto& from : w.wires)
    for (const auto& way : from)
      if (!way.empty())
        return false;
  for (std::size_t i = 0; i < limits.ranks; ++i)
    if (w.ranks[i].phase != actors::rank_phase::ready)
      return false;
  return true;
}

world first_world(const model_limits& limits) {
  world made;
  made.faults_left = limits.faults;
  if (!limits.starts_serving)
    return made;
  for (std::size_t i = 0; i < limits.ranks; ++i) {
    made.ranks[i] = {actors::rank_phase::ready, true, 1, 0, 0};
    made.here |= static_cast<std::uint8_t>(1u << i);
  }
  made.loaded = made.assigned = made.greeted = made.here;
  made.joined = made.here | static_cast<std::uint8_t>(1u << conductor_party);
  made.conductor = actors::conductor_phase::serving;
  made.director = actors::director_phase::serving;
  made.conductor_epoch = made.epoch = 1;
  return made;
}

} // namespace

actors::rank_input column_of(word what) {
  switch (what) {
  case word::assignment: return actors::rank_input::assignment;
  case word::plan: return actors::rank_input::epoch_plan;
  case word::fence: return actors::rank_input::fence;
  case word::tokens: return actors::rank_input::step_tokens;
  case word::rows: return actors::rank_input::step_rows;
  case word::input: return actors::rank_input::partition_input;
  case word::unit: return actors::rank_input::unit_due;
  case word::leave: return actors::rank_input::group_leave;
  case word::finish: return actors::rank_input::pass_finish;
  default: return actors::rank_input::peer_down;
  }
}

bool has_epoch(word what) {
  return what == word::fence || what == word::tokens || what == word::rows || what == word::input;
}

std::string world::bytes() const {
  std::string out;
  out.reserve(96);
  const auto put = [&](auto value) { out.push_back(static_cast<char>(value)); };
  for (const auto& one : ranks) {
    put(one.phase);
    put(one.alive);
    put(one.epoch);
    put(one.step);
    put(one.life);
  }
  for (const auto value : {static_cast<std::uint8_t>(conductor),
                           conductor_epoch,
                           committed,
                           in_flight,
                           static_cast<std::uint8_t>(director),
                           epoch,
                           here,
                           greeted,
                           assigned,
                           loaded,
                           unwired,
                           joined,
                           faults_left})
    put(value);
  for (const auto& from : wires)
    for (const auto& way : from) {
      for (const auto& one : way) {
        put(static_cast<std::uint8_t>(one.what) + 1u); // 0 ends a wire.
        put(one.epoch);
        put(one.step);
      }
      put(0);
    }
  return out;
}

exploration explore(const model_limits& limits) {
  exploration told;
  std::unordered_map<std::string, std::uint32_t> known;
  std::deque<world> open;
  std::vector<std::vector<std::uint32_t>> before; ///< Of each world: those that lead to it.
  std::vector<std::uint32_t> good;
  world first = first_world(limits);
  known.emplace(first.bytes(), 0);
  before.emplace_back();
  open.push_back(std::move(first));
  for (std::uint32_t number = 0; !open.empty(); ++number) {
    const auto now = std::move(open.front());
    open.pop_front();
    if (is_goal(now, limits))
      good.push_back(number);
    const std::function<void(world &&)> next = [&](world&& after) {
      ++told.transitions;
      const auto [place, fresh] =
        known.emplace(after.bytes(), static_cast<std::uint32_t>(before.size()));
      if (fresh) {
        before.emplace_back();
        open.push_back(std::move(after));
      }
      before[place->second].push_back(number);
    };
    find_moves(limits, now, next, told);
  }
  told.worlds = before.size();
  told.goals = good.size();
  std::vector<bool> ends(before.size());
  while (!good.empty()) {
    const auto number = good.back();
    good.pop_back();
    if (ends[number])
      continue;
    ends[number] = true;
    good.insert(good.end(), before[number].begin(), before[number].end());
  }
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (!ends[i]) {
      told.broken.push_back("there are worlds from which no way leads to the end; one is number "
                            + std::to_string(i) + " of " + std::to_string(ends.size()));
      break;
    }
  return told;
}

} // namespace troupe::tests
