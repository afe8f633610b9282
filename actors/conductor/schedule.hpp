#pragma once
// The schedule: which rows go into the next step. Continuous batching: sequences join and leave at
// step borders, prompts are cut into chunks that ride along with decode rows, and as many steps are
// in flight as there are stages. Pure bookkeeping: no actor, no clock, no wire; one owner.
//
// A sequence reserves every page that it may come to need before its first step, so no step ever
// runs out of state; what does not fit waits in order. Contract rules 39, 52, 60, 61.
//
// After a fault the stages that lost their state get it back by replays: steps that run on these
// stages alone, fed with the tokens (stage 0) or with the rows that the stage before them sent once
// and kept. Everyone else keeps what was committed. A sequence goes on once all stages have caught
// up with it; others do not wait for it.

#include "actors/conductor/page_pool.hpp"
#include "actors/messages/steps.hpp"
#include "config/result.hpp"
#include "config/topology.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

struct schedule_limits {
  std::size_t context = 0;       ///< Tokens of one sequence at most.
  std::size_t max_sequences = 1; ///< Live at once.
  std::size_t max_queue = 1;     ///< Waiting.
  std::size_t max_rows = 1;      ///< Rows of one step.
  std::size_t prefill_chunk = 1; ///< Rows of one prompt in one step; of all prompts, where they
                                 ///< would not keep every step in flight busy with more.
  std::size_t micro_batches = 1; ///< Steps in flight.
  std::size_t pages = 0;         ///< On every rank.
  std::size_t stages = 1;
  bool keeps_boundaries = true; ///< Stages keep the rows that they sent; else replays begin at 0.
};

/// What one stage holds of one sequence.
struct stage_holding {
  std::size_t positions = 0; ///< In its state: so many, from the first one on.
  range rows;                ///< Positions whose rows it keeps for the next stage.
};

/// By slot and stage. A slot that is missing is held by nobody.
using held_slots = std::map<slot_id, std::vector<stage_holding>>;

/// A request as the schedule sees it.
struct sequence_wish {
  request_id id{};
  std::string label;            ///< What the client calls it.
  std::vector<token_id> prompt; ///< At least one token.
  std::size_t max_tokens = 0;   ///< New tokens at most, at least 1.
  sampling_choice sampling;
  std::vector<token_id> end_tokens; ///< Any of these ends it; empty = go on to max_tokens.
  bool with_digests = false;
  bool with_logprobs = false;
  std::optional<answer_rules> rules;
};

enum class sequence_end : std::uint8_t { none, end_token, length, failed };

/// One token that a committed step gave a sequence.
struct committed_token {
  request_id id{};
  token_id token = 0;
  float logprob = 0;
  std::uint64_t digest = 0;
  std::vector<token_odds> top;
  sequence_end ended = sequence_end::none;
  std::uint8_t code = 0; ///< With `failed`: troupe::errc.
};

struct next_step {
  step_plan plan;
  std::vector<token_id> tokens; ///< One a row, for the ranks that own input.
};

class schedule {
public:
  explicit schedule(const schedule_limits& limits);

  /// Queues a request. Errors: invalid_argument (empty prompt, nothing to write, too long for the
  /// context or for all pages: both numbers), overloaded (the queue is full).
  result<void> submit(sequence_wish wish);

  /// Takes a request in again that was accepted once and had been given these tokens: it waits,
  /// whatever the length of the queue.
  void resume(sequence_wish wish, std::span<const token_id> answer);

  /// The next step, if the number of steps in flight allows one and there is something to run.
  std::optional<next_step> plan_step(epoch_id epoch);

  /// A step's outcome. An output that does not belong to the oldest ordinary step in flight or to a
  /// replay, or does not match its entries, is contract_violation (the wires keep order, so this is
  /// a fault of the sender).
  result<std::vector<committed_token>> commit(const step_output& output);

  /// Withdraws a request; what it has in flight is discarded when it arrives. False when unknown.
  bool cancel(request_id id);

  /// Slots that ended since the last step and that no step has carried to the ranks yet. Empty when
  /// a step is due that will carry them.
  std::vector<slot_id> take_idle_releases();

  /// The epoch is over: what was in flight is forgotten, and every live sequence goes on from what
  /// was committed, once the stages that lost their state have it back.
  void interrupt();

  /// The ranks of `stage` hold nothing of any live sequence.
  void lose(std::size_t stage);

  /// Another plan with so many stages and pages, whose stages hold this of the live sequences. They
  /// go on where they are once the stages that lack something have it. Those that nobody holds, or
  /// whose pages there are no more, wait before all others and compute their tokens again, prompt
  /// and answer so far. Returns the requests that can never fit any more; they are withdrawn.
  std::vector<request_id>
  reform(std::size_t stages, std::size_t pages, std::size_t micro_batches, const held_slots& held);

  /// Every request, waiting or running, withdrawn at once, in order of arrival (a fault). The
  /// schedule is as new afterwards.
  std::vector<request_id> clear();

  std::size_t waiting() const noexcept { return waiting_.size(); }

  std::size_t running() const noexcept { return live_.size(); }

  std::size_t steps_in_flight() const noexcept { return in_flight_.size(); }

  std::uint64_t steps_planned() const noexcept { return next_step_ - 1; }

  const page_pool& pages() const noexcept { return pages_; }

  const schedule_limits& limits() const noexcept { return limits_; }

private:
  struct sequence {
    sequence_wish wish;
    std::vector<token_id> tokens;    ///< Prompt and committed answer.
    std::size_t planned = 0;         ///< Positions given to steps so far.
    std::size_t committed = 0;       ///< Positions whose step has ended on every stage.
    std::vector<stage_holding> held; ///< By stage. One with less than `committed` lags.
    bool output_in_flight = false;
    std::size_t steps_in_flight = 0;
    bool cancelled = false;
    bool introduced = false; ///< Its pages have been told to the ranks.
    slot_id slot{};
    std::vector<page_id> pages;

    bool decoding() const { return planned + 1 >= tokens.size() && planned >= wish.prompt.size(); }

    bool lags() const;
  };

  /// What a sequence has in a step.
  struct part {
    slot_id slot{};
    range positions;
  };

  struct flight {
    step_id step{};
    std::vector<slot_id> outputs; ///< Slots that this step gives a token to, in order.
    std::vector<part> touched;    ///< All slots with rows in it.
    range stages;                 ///< Of a replay; empty for an ordinary step.
    std::uint32_t micro_batch = 0;

    bool replay() const { return stages.end > stages.begin; }
  };

  /// The next replay that a sequence needs: positions on stages.
  struct gap {
    range stages;
    range positions;
  };

  void admit();
  gap next_gap(const sequence& which) const;
  std::optional<next_step> plan_replay(epoch_id epoch);
  next_step number_step(next_step step, flight record, epoch_id epoch);
  result<flight> take_flight(const step_output& output);
  void advance(const flight& record);
  bool hold_on(sequence& which, const held_slots& held) const;
  std::size_t ordinary_in_flight() const;
  std::uint32_t free_micro_batch() const;
  void add_decode_rows(next_step& step, flight& record);
  std::size_t prompt_share() const;
  void add_prompt_rows(next_step& step, flight& record);
  void introduce(step_entry& entry, sequence& which);
  void add_entry(next_step& step, flight& record, sequence& which, std::size_t count);
  committed_token take_token(sequence& which, const token_choice& choice);
  void release(slot_id slot);

  schedule_limits limits_;
  page_pool pages_;
  std::deque<sequence> waiting_;
  std::map<slot_id, sequence> live_;
  std::vector<slot_id> order_;      ///< Live slots by admission.
  std::vector<slot_id> free_slots_; ///< The next one is at the back.
  std::vector<slot_id> released_;   ///< Not yet told to the ranks.
  std::deque<flight> in_flight_;
  std::uint64_t next_step_ = 1;
  std::size_t turn_ = 0; ///< Where the round of decode rows goes on.
};

} // namespace troupe::actors
