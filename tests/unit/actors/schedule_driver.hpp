#pragma once
// The two neighbours of a schedule, for its tests: ranks that keep books about slots and pages as
// real ones do, and a last stage that answers steps in order. Every broken rule is a failed check.

#include "actors/schedule.hpp"
#include "compute/batch.hpp"

#include <boost/test/unit_test.hpp>

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
    BOOST_TEST(work_.steps_in_flight() <= limits_.micro_batches);
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

  /// What the ranks do when an epoch ends.
  void forget() {
    slots_.clear();
    in_flight_.clear();
  }

  std::size_t steps_in_flight() const { return in_flight_.size(); }

  std::size_t slots_held() const { return slots_.size(); }

private:
  /// A sequence as a rank knows it.
  struct held {
    std::vector<page_id> pages;
    std::uint32_t position = 0; ///< Where the next rows go.
  };

  void free_slots(const std::vector<slot_id>& released) {
    for (const auto slot : released)
      BOOST_TEST(slots_.erase(slot) == 1u, "slot " << number(slot) << " was released twice");
  }

  void look_at(const actors::next_step& step) {
    BOOST_TEST(number(step.plan.epoch) == 3u);
    BOOST_TEST(number(step.plan.step) == ++last_step_);
    BOOST_TEST(step.plan.rows() == step.tokens.size());
    BOOST_TEST(step.plan.rows() >= 1u);
    BOOST_TEST(step.plan.rows() <= limits_.max_rows);
    free_slots(step.plan.released);
    std::set<slot_id> seen;
    for (const auto& entry : step.plan.entries) {
      BOOST_TEST(seen.insert(entry.slot).second, "a slot has two entries in a step");
      BOOST_TEST(number(entry.slot) < limits_.max_sequences);
      BOOST_TEST(entry.count >= 1u);
      look_at(entry);
    }
  }

  void look_at(const actors::step_entry& entry) {
    const bool is_new = !slots_.contains(entry.slot);
    BOOST_TEST(is_new == !entry.pages.empty(), "pages come with the first entry, and only there");
    auto& known = slots_[entry.slot];
    if (is_new) {
      known.pages = entry.pages;
      check_pages(entry);
    }
    BOOST_TEST(entry.position == known.position, "positions of a sequence are contiguous");
    if (entry.count > 1)
      BOOST_TEST(entry.count <= limits_.prefill_chunk);
    known.position = entry.position + entry.count;
    BOOST_TEST(known.position <= limits_.context);
    BOOST_TEST(known.position <= known.pages.size() * compute::kv_page_tokens);
  }

  void check_pages(const actors::step_entry& entry) {
    const std::set<page_id> own(entry.pages.begin(), entry.pages.end());
    BOOST_TEST(own.size() == entry.pages.size(), "a page is listed twice");
    for (const auto& [slot, other] : slots_)
      for (const auto page : slot == entry.slot ? std::vector<page_id>{} : other.pages)
        BOOST_TEST(!own.contains(page), "page " << number(page) << " belongs to two slots");
    for (const auto page : own)
      BOOST_TEST(number(page) < limits_.pages);
  }

  actors::schedule_limits limits_;
  actors::schedule work_;
  std::map<slot_id, held> slots_;
  std::deque<actors::step_plan> in_flight_;
  std::uint64_t last_step_ = 0;
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

} // namespace troupe::tests
