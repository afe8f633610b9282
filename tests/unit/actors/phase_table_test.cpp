#include "actors/conductor/conductor_phases.hpp"
#include "actors/director/director_phases.hpp"
#include "actors/rank/rank_phases.hpp"

#include <boost/test/unit_test.hpp>

#include <initializer_list>
#include <set>

using namespace troupe::actors;

namespace {

/// Walks a table along inputs; every one of them must be taken.
template <class Table, class Phase, class Input>
Phase walk(const Table& table, Phase phase, std::initializer_list<Input> inputs) {
  for (const auto input : inputs) {
    const auto& cell = table.at(phase, input);
    BOOST_TEST((cell.what == verdict::go),
               table.name(phase) << " does not take " << table.name(input));
    phase = cell.next;
  }
  return phase;
}

/// What is true of every table, cell by cell.
template <class Phase, std::size_t Phases, class Input, std::size_t Inputs>
void check_cells(const phase_table<Phase, Phases, Input, Inputs>& table, Phase last) {
  std::set<std::string_view> names(table.phase_names.begin(), table.phase_names.end());
  BOOST_TEST(names.size() == Phases);
  names = {table.input_names.begin(), table.input_names.end()};
  BOOST_TEST(names.size() == Inputs);
  for (std::size_t p = 0; p < Phases; ++p) {
    for (std::size_t i = 0; i < Inputs; ++i) {
      const auto& cell = table.rows[p][i];
      BOOST_TEST(static_cast<std::size_t>(cell.next) < Phases);
      if (static_cast<Phase>(p) == last)
        BOOST_TEST((cell.what == verdict::drop || cell.what == verdict::refuse),
                   table.phase_names[p] << " is left or waits at " << table.input_names[i]);
    }
  }
  BOOST_TEST(table.all_reachable());
  BOOST_TEST(table.all_have_a_way_out(last));
  BOOST_TEST(table.all_holds_end());
}

enum class door : std::uint8_t { open, closed, gone };
enum class push : std::uint8_t { close, slam };

} // namespace

BOOST_AUTO_TEST_CASE(every_cell_of_every_table_is_sound) {
  check_cells(rank_phases, rank_phase::stopped);
  check_cells(conductor_phases, conductor_phase::stopped);
  check_cells(director_phases, director_phase::stopped);
}

BOOST_AUTO_TEST_CASE(a_table_with_a_fault_is_found_out) {
  using table = phase_table<door, 3, push, 2>;
  using enum door;
  constexpr auto no = verdict::refuse, hold = verdict::hold;
  const table island{{{{{closed, no}}, {{open, no}}, {{gone, no}}}}, {"a", "b", "c"}, {"x", "y"}};
  BOOST_TEST(!island.all_reachable());
  const table trap{{{{{closed, gone}}, {{closed, no}}, {{no, no}}}}, {"a", "b", "c"}, {"x", "y"}};
  BOOST_TEST(!trap.all_have_a_way_out(gone));
  const table held{{{{{closed, hold}}, {{open, hold}}, {{no, hold}}}}, {"a", "b", "c"}, {"x", "y"}};
  BOOST_TEST(!held.all_holds_end());
  BOOST_TEST(held.to_markdown()
             == "| phase | x | y |\n|---|---|---|\n| **a** | b | *hold* |\n| **b** | a | *hold* |\n"
                "| **c** | – | *hold* |\n");
}

BOOST_AUTO_TEST_CASE(a_rank_goes_from_nothing_to_a_step_and_back_to_ready) {
  using in = rank_input;
  const auto ready = walk(rank_phases,
                          rank_phase::empty,
                          {in::assignment, in::load_succeeded, in::epoch_plan, in::peers_heard});
  BOOST_TEST((ready == rank_phase::ready));
  // The first stage starts on tokens, the others when the rows of the stage before are there.
  for (const auto& start : {std::initializer_list<in>{in::step_tokens},
                            std::initializer_list<in>{in::step_rows, in::partition_input}}) {
    auto phase = walk(rank_phases, ready, start);
    BOOST_TEST((phase == rank_phase::in_group));
    phase = walk(rank_phases, phase, {in::unit_due, in::unit_due, in::group_leave});
    BOOST_TEST((phase == rank_phase::leaving));
    BOOST_TEST((walk(rank_phases, phase, {in::pass_finish}) == rank_phase::ready));
  }
}

BOOST_AUTO_TEST_CASE(rule_30_a_pass_neither_enters_twice_nor_finishes_without_leaving) {
  using enum rank_phase;
  using in = rank_input;
  for (const auto input : {in::step_tokens, in::step_rows, in::partition_input})
    for (const auto phase : {in_group, leaving})
      BOOST_TEST((rank_phases.at(phase, input).what == verdict::hold)); // the next pass waits
  for (const auto phase : {ready, awaiting_input, in_group})
    BOOST_TEST((rank_phases.at(phase, in::pass_finish).what != verdict::go));
  for (const auto phase : {ready, awaiting_input, leaving})
    BOOST_TEST((rank_phases.at(phase, in::group_leave).what != verdict::go));
}

BOOST_AUTO_TEST_CASE(rule_46_a_failed_pass_fences_and_a_new_epoch_mends) {
  using enum rank_phase;
  using in = rank_input;
  for (const auto phase : {joining, ready, awaiting_input, in_group, leaving}) {
    for (const auto fault : {in::pass_failed, in::peer_down}) {
      BOOST_TEST((walk(rank_phases, phase, {fault}) == fenced));
      // The new plan may come before the fence of the old epoch: it waits.
      BOOST_TEST((rank_phases.at(fenced, in::epoch_plan).what == verdict::hold));
      BOOST_TEST(
        (walk(rank_phases, phase, {fault, in::fence, in::epoch_plan, in::peers_heard}) == ready));
    }
    BOOST_TEST((walk(rank_phases, phase, {in::fence}) == loaded)); // a fault elsewhere
  }
}

BOOST_AUTO_TEST_CASE(a_fenced_rank_takes_no_work) {
  using in = rank_input;
  for (const auto input : {in::step_tokens,
                           in::step_rows,
                           in::rows_again,
                           in::slots_released,
                           in::partition_input,
                           in::unit_due,
                           in::group_leave,
                           in::pass_finish})
    BOOST_TEST((rank_phases.at(rank_phase::fenced, input).what == verdict::drop));
}

BOOST_AUTO_TEST_CASE(every_phase_of_a_rank_hears_stop) {
  for (std::size_t p = 0; p < rank_phases.rows.size(); ++p) {
    const auto phase = static_cast<rank_phase>(p);
    const auto& cell = rank_phases.at(phase, rank_input::stop);
    if (phase == rank_phase::loading) // a load is not cut off; it waits for its end
      BOOST_TEST((cell.what == verdict::hold));
    else if (phase != rank_phase::stopped)
      BOOST_TEST((cell.what == verdict::go && cell.next == rank_phase::stopped));
  }
}

BOOST_AUTO_TEST_CASE(the_conductor_serves_drains_and_stops) {
  using in = conductor_input;
  using enum conductor_phase;
  BOOST_TEST((walk(conductor_phases,
                   waiting,
                   {in::epoch_plan,
                    in::peers_heard,
                    in::request,
                    in::step_output,
                    in::stop,
                    in::step_output,
                    in::drained})
              == stopped));
  for (const auto lost : {in::step_late, in::peer_down, in::fence})
    BOOST_TEST((walk(conductor_phases, serving, {lost}) == waiting));
  for (const auto phase : {waiting, joining, draining})
    BOOST_TEST((conductor_phases.at(phase, in::request).what == verdict::refuse));
}

BOOST_AUTO_TEST_CASE(the_director_starts_mends_and_ends_a_cluster) {
  using in = director_input;
  using enum director_phase;
  const auto serving_now = walk(
    director_phases,
    gathering,
    {in::hello, in::all_here, in::rank_loaded, in::all_loaded, in::rank_joined, in::all_joined});
  BOOST_TEST((serving_now == serving));
  for (const auto lost : {in::epoch_lost, in::node_lost})
    BOOST_TEST(
      (walk(director_phases, serving_now, {lost, in::all_here, in::all_loaded, in::all_joined})
       == serving));
  BOOST_TEST((walk(director_phases, serving_now, {in::stop, in::all_ended}) == stopped));
  BOOST_TEST((walk(director_phases, gathering, {in::late}) == failed));
  BOOST_TEST((walk(director_phases, loading, {in::hopeless, in::all_ended}) == stopped));
}
