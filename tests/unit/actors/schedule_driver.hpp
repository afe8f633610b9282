#pragma once
// The two neighbours of a schedule, for its tests: stages that keep books about slots, pages and
// what their state holds, as real ones do, and a last stage that answers steps in order. Every
// broken rule is a failed check.

#include "actors/conductor/schedule.hpp"
#include "compute/batch.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::tests {

class schedule_driver {
public:
  explicit schedule_driver(const actors::schedule_limits& limits)
    : limits_(limits), work_(limits) {}

  actors::schedule& work() { return work_; }

  /// Plans a step if there is one, and lets the ranks look at it.
  std::optional<actors::next_step> plan() {
    auto step = work_.plan_step(epoch_id{3});
    BOOST_TEST(work_.steps_in_flight() <= limits_.micro_batches + 1); // and a replay
    if (step) {
      look_at(*step);
      in_flight_.push_back(step->plan);
    }
    return step;
  }

  /// The oldest step in flight, answered: each output gets `token`, or fails with `code`.
  actors::step_output answer(token_id token, std::uint8_t code = 0) {
    BOOST_REQUIRE(!in_flight_.empty());
    actors::step_output output;
    output.epoch = in_flight_.front().epoch;
    output.step = in_flight_.front().step;
    for (const auto& entry : in_flight_.front().entries) {
      if (!entry.has(actors::step_entry::wants_output))
        continue;
      actors::token_choice choice;
      choice.slot = entry.slot;
      choice.token = token;
      choice.code = code;
      output.choices.push_back(choice);
    }
    in_flight_.pop_front();
    return output;
  }

  /// answer() and commit() of the oldest step.
  std::vector<actors::committed_token> commit(token_id token, std::uint8_t code = 0) {
    auto given = work_.commit(answer(token, code));
    BOOST_REQUIRE_MESSAGE(given, (given ? "" : given.error().what));
    return *given;
  }

  /// One step and its outcome; nothing when there is no step.
  std::vector<actors::committed_token> turn(token_id token) {
    return plan() ? commit(token) : std::vector<actors::committed_token>{};
  }

  /// Releases that no step carries reach the ranks as well.
  void tell_idle_releases() { free_slots(work_.take_idle_releases()); }

  /// What the ranks do when a cluster starts anew: nothing of it is left.
  void forget() {
    introduced_.clear();
    known_.clear();
    in_flight_.clear();
  }

  /// An epoch ends: of the steps in flight, only the stages before `reached` have run. The stages
  /// in `lost` come back without their state.
  void interrupt(std::size_t reached, const std::set<std::size_t>& lost) {
    for (const auto& step : in_flight_)
      for (const auto& entry : step.entries)
        for (auto stage = std::max<std::size_t>(reached, step.first_stage);
             stage < (step.replay() ? step.last_stage : limits_.stages);
             ++stage)
          for (std::size_t i = 0; i < entry.count; ++i) {
            cell(stage, known_.at(entry.slot), entry.position + i) = nothing;
            row(stage, known_.at(entry.slot), entry.position + i) = nothing;
          }
    in_flight_.clear();
    introduced_.clear();
    work_.interrupt();
    for (const auto stage : lost) {
      state_[stage].clear();
      rows_[stage].clear();
      work_.lose(stage);
    }
    interrupted_ = true;
  }

  /// An epoch ends once all in flight has run, and another plan follows: every new stage but those
  /// in `lost` gets what all old stages had, and nobody keeps rows of it. Returns the requests that
  /// do not fit any more.
  std::vector<request_id>
  replan(std::size_t stages, std::size_t pages, const std::set<std::size_t>& lost) {
    interrupt(limits_.stages, {});
    auto common = state_.front();
    for (const auto& other : state_)
      for (auto& [page, cells] : common) {
        const auto found = other.find(page);
        for (std::size_t i = 0; i < cells.size(); ++i)
          if (found == other.end() || found->second.at(i) != cells[i])
            cells[i] = nothing;
      }
    state_.assign(1, common);
    actors::held_slots told;
    for (const auto& [slot, known] : known_) {
      std::size_t length = 0;
      while (length < known.tokens.size() && cell(0, known, length) == known.tokens[length])
        ++length;
      for (std::size_t stage = 0; stage < stages; ++stage)
        told[slot].push_back(lost.contains(stage)
                               ? actors::stage_holding{}
                               : actors::stage_holding{length, {length, length}});
    }
    state_.assign(stages, common);
    rows_.assign(stages, {});
    for (const auto stage : lost)
      state_[stage].clear();
    rows_run_.assign(stages, 0);
    limits_.stages = stages;
    limits_.pages = pages;
    return work_.reform(stages, pages, limits_.micro_batches, told);
  }

  std::size_t steps_in_flight() const { return in_flight_.size(); }

  std::size_t slots_held() const { return introduced_.size(); }

  /// Rows that each stage computed, replays included.
  const std::vector<std::size_t>& rows_run() const { return rows_run_; }

private:
  static constexpr std::int64_t nothing = -1;

  /// A sequence as the ranks know it.
  struct held {
    std::vector<page_id> pages;
    std::vector<std::int64_t> tokens; ///< That steps have brought.
    std::uint32_t position = 0;       ///< Where the next rows go.
  };

  /// By page and position in it: the token that was computed there.
  using paged_tokens = std::map<page_id, std::vector<std::int64_t>>;

  static std::int64_t& at(paged_tokens& pages, const held& which, std::size_t position) {
    using compute::kv_page_tokens;
    auto& page = pages[which.pages.at(position / kv_page_tokens)];
    page.resize(kv_page_tokens, nothing);
    return page[position % kv_page_tokens];
  }

  /// What a stage's state holds at a position.
  std::int64_t& cell(std::size_t stage, const held& which, std::size_t position) {
    return at(state_[stage], which, position);
  }

  /// And which rows it keeps for the next stage.
  std::int64_t& row(std::size_t stage, const held& which, std::size_t position) {
    return at(rows_[stage], which, position);
  }

  void free_slots(const std::vector<slot_id>& released) {
    for (const auto slot : released)
      BOOST_TEST(introduced_.erase(slot) == 1u, "slot " << number(slot) << " was released twice");
  }

  void look_at(const actors::next_step& step) {
    const auto& plan = step.plan;
    BOOST_TEST(number(plan.epoch) == 3u);
    BOOST_TEST(number(plan.step) == ++last_step_);
    const bool wants_tokens = plan.first_stage == 0;
    BOOST_TEST(step.tokens.size() == (wants_tokens ? plan.rows() : 0u));
    BOOST_TEST(plan.rows() >= 1u);
    BOOST_TEST(plan.rows() <= limits_.max_rows);
    free_slots(plan.released);
    std::set<slot_id> seen;
    std::size_t row = 0;
    for (const auto& entry : plan.entries) {
      BOOST_TEST(seen.insert(entry.slot).second, "a slot has two entries in a step");
      BOOST_TEST(number(entry.slot) < limits_.max_sequences);
      BOOST_TEST(entry.count >= 1u);
      std::vector<std::int64_t> tokens;
      for (std::size_t i = 0; wants_tokens && i < entry.count; ++i)
        tokens.push_back(step.tokens[row++]);
      if (plan.replay())
        replay(plan, entry, std::move(tokens));
      else
        run(entry, tokens);
    }
  }

  void run(const actors::step_entry& entry, const std::vector<std::int64_t>& tokens) {
    const bool is_new = introduced_.insert(entry.slot).second;
    BOOST_TEST(is_new == !entry.pages.empty(), "pages come with the first entry, and only there");
    auto& known = known_[entry.slot];
    if (is_new) {
      if (entry.position == 0)
        known = {};
      known.pages = entry.pages;
      check_pages(entry);
    }
    if (!interrupted_ || !is_new)
      BOOST_TEST(entry.position == known.position, "positions of a sequence are contiguous");
    BOOST_TEST(entry.position <= known.tokens.size());
    if (entry.count > 1)
      BOOST_TEST(entry.count <= limits_.prefill_chunk);
    known.position = entry.position + entry.count;
    BOOST_TEST(known.position <= limits_.context);
    BOOST_TEST(known.position <= known.pages.size() * compute::kv_page_tokens);
    known.tokens.resize(entry.position);
    known.tokens.insert(known.tokens.end(), tokens.begin(), tokens.end());
    for (std::size_t stage = 0; stage < limits_.stages; ++stage)
      compute(stage, known, entry, tokens);
  }

  void replay(const actors::step_plan& plan,
              const actors::step_entry& entry,
              std::vector<std::int64_t> tokens) {
    BOOST_TEST(entry.flags == 0u, "nothing is chosen in a replay");
    auto& known = known_.at(entry.slot);
    BOOST_TEST((entry.pages == known.pages));
    for (std::size_t i = 0; plan.first_stage > 0 && i < entry.count; ++i)
      tokens.push_back(row(plan.first_stage - 1, known, entry.position + i));
    for (std::size_t i = 0; i < entry.count; ++i)
      BOOST_TEST(tokens[i] == known.tokens.at(entry.position + i), "rows that were never sent");
    for (std::size_t stage = plan.first_stage; stage < plan.last_stage; ++stage)
      compute(stage, known, entry, tokens);
  }

  /// Attention reads all positions before the entry's.
  void compute(std::size_t stage,
               const held& known,
               const actors::step_entry& entry,
               const std::vector<std::int64_t>& tokens) {
    for (std::size_t i = 0; i < entry.position; ++i)
      if (cell(stage, known, i) != known.tokens.at(i)) {
        BOOST_ERROR("stage " << stage << " has not position " << i << " of slot "
                             << number(entry.slot));
        break;
      }
    for (std::size_t i = 0; i < entry.count; ++i) {
      cell(stage, known, entry.position + i) = tokens.at(i);
      if (limits_.keeps_boundaries && stage + 1 < limits_.stages)
        row(stage, known, entry.position + i) = tokens.at(i);
    }
    rows_run_[stage] += entry.count;
  }

  void check_pages(const actors::step_entry& entry) {
    const std::set<page_id> own(entry.pages.begin(), entry.pages.end());
    BOOST_TEST(own.size() == entry.pages.size(), "a page is listed twice");
    for (const auto slot : introduced_)
      for (const auto page : slot == entry.slot ? std::vector<page_id>{} : known_.at(slot).pages)
        BOOST_TEST(!own.contains(page), "page " << number(page) << " belongs to two slots");
    for (const auto page : own)
      BOOST_TEST(number(page) < limits_.pages);
  }

  actors::schedule_limits limits_;
  actors::schedule work_;
  std::map<slot_id, held> known_;
  std::set<slot_id> introduced_; ///< In this epoch, and not released.
  std::vector<paged_tokens> state_ = std::vector<paged_tokens>(limits_.stages);
  std::vector<paged_tokens> rows_ = std::vector<paged_tokens>(limits_.stages);
  std::vector<std::size_t> rows_run_ = std::vector<std::size_t>(limits_.stages, 0);
  std::deque<actors::step_plan> in_flight_;
  std::uint64_t last_step_ = 0;
  bool interrupted_ = false;
};

/// A request for `new_tokens` tokens after a prompt of `prompt` tokens 100, 101, ...
inline actors::sequence_wish wish(std::uint64_t id,
                                  std::size_t prompt,
                                  std::size_t new_tokens,
                                  std::vector<token_id> ends = {}) {
  actors::sequence_wish made;
  made.id = request_id{id};
  for (std::size_t i = 0; i < prompt; ++i)
    made.prompt.push_back(static_cast<token_id>(100 + i));
  made.max_tokens = new_tokens;
  made.end_tokens = std::move(ends);
  return made;
}

/// Limits that nothing here meets.
inline constexpr actors::schedule_limits roomy{.context = 1024,
                                               .max_sequences = 4,
                                               .max_queue = 16,
                                               .max_rows = 64,
                                               .prefill_chunk = 16,
                                               .micro_batches = 1,
                                               .pages = 128};

inline void submit(schedule_driver& driver, actors::sequence_wish what) {
  const auto done = driver.work().submit(std::move(what));
  BOOST_REQUIRE_MESSAGE(done, (done ? "" : done.error().what));
}

inline std::vector<std::uint64_t> ids_of(const std::vector<actors::committed_token>& given) {
  std::vector<std::uint64_t> ids;
  for (const auto& one : given)
    ids.push_back(number(one.id));
  return ids;
}

using ids = std::vector<std::uint64_t>;

} // namespace troupe::tests
