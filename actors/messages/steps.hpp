#pragma once
// The data road: steps, boundaries and their outputs, from the conductor to the ranks, from stage
// to stage and back, over UCX (actors/wires/peer, actors/wires/codec).

#include "actors/caf.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// How to choose a token; compute::sampling with its reals as bits.
struct sampling_choice {
  real32 temperature = 0.0f;
  std::uint32_t top_k = 0;
  real32 top_p = 1.0f;
  real32 min_p = 0.0f;
  real32 repetition_penalty = 1.0f;
  real32 frequency_penalty = 0.0f;
  real32 presence_penalty = 0.0f;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0; ///< Which of the seed's draws: one for each answer to a prompt.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sampling_choice& x) {
  return f(caf::meta::type_name("sampling_choice"),
           x.temperature,
           x.top_k,
           x.top_p,
           x.min_p,
           x.repetition_penalty,
           x.frequency_penalty,
           x.presence_penalty,
           x.seed,
           x.stream);
}

/// What is added to the logit of one token before the penalties.
struct token_bias {
  token_id token = 0;
  real32 bias = 0.0f;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, token_bias& x) {
  return f(caf::meta::type_name("token_bias"), x.token, x.bias);
}

/// What only some requests ask of the sampler. It is told once, with the first rows of a slot.
struct answer_rules {
  std::vector<token_bias> bias; ///< By ascending token, each once.
  std::uint32_t top_logprobs = 0;
  std::string schema;           ///< JSON schema that the answer follows; empty: any text.
  std::vector<token_id> ends;   ///< With a schema: the tokens that may end the answer.
  std::vector<token_id> so_far; ///< With a schema: the answer's tokens before this epoch.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, answer_rules& x) {
  return f(
    caf::meta::type_name("answer_rules"), x.bias, x.top_logprobs, x.schema, x.ends, x.so_far);
}

/// One sequence's part of a step: `count` new tokens from `position` on.
struct step_entry {
  static constexpr std::uint8_t wants_output = 1;  ///< Sample after the last of these tokens.
  static constexpr std::uint8_t wants_digest = 2;  ///< Report a digest of the logits as well.
  static constexpr std::uint8_t wants_logprob = 4; ///< And the token's probability.

  slot_id slot{};
  request_id request{}; ///< For logs and traces.
  std::uint32_t position = 0;
  std::uint32_t count = 0;
  std::uint8_t flags = 0;
  std::uint32_t candidates = 0; ///< As compute::sequence_rows: so many suffice; 0: whole logits.
  sampling_choice sampling;
  std::vector<page_id> pages;      ///< The whole list when the slot is new, else empty.
  std::string label;               ///< Beside `pages`: what the client calls the request.
  std::vector<token_id> history;   ///< Tokens so far, only where a penalty needs them.
  std::vector<answer_rules> rules; ///< One, beside `pages`, where the request has any.

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_entry& x) {
  return f(caf::meta::type_name("step_entry"),
           x.slot,
           x.request,
           x.position,
           x.count,
           x.flags,
           x.candidates,
           x.sampling,
           x.pages,
           x.label,
           x.history,
           x.rules);
}

/// What all ranks do in one step, decided by the conductor alone (contract rules 60, 62).
struct step_plan {
  epoch_id epoch{};
  step_id step{};
  std::vector<step_entry> entries;
  std::vector<slot_id> released; ///< Slots whose sequences ended; freed before the step runs.
  /// A replay rebuilds state that was lost: only these stages run, and the last of them publishes
  /// an empty output. Empty for an ordinary step, which all stages run.
  std::uint32_t first_stage = 0;
  std::uint32_t last_stage = 0;  ///< One past the last.
  std::uint32_t micro_batch = 0; ///< Which of the steps that are in flight at once.

  bool replay() const { return last_stage > first_stage; }

  std::uint32_t rows() const {
    std::uint32_t sum = 0;
    for (const auto& entry : entries)
      sum += entry.count;
    return sum;
  }
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_plan& x) {
  return f(caf::meta::type_name("step_plan"),
           x.epoch,
           x.step,
           x.entries,
           x.released,
           x.first_stage,
           x.last_stage,
           x.micro_batch);
}

/// conductor -> ranks that own input: the plan and one token a row.
struct step_tokens {
  step_plan plan;
  std::vector<token_id> tokens;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_tokens& x) {
  return f(caf::meta::type_name("step_tokens"), x.plan, x.tokens);
}

/// conductor -> all other ranks: the plan; the rows come from the stage before.
struct step_rows {
  step_plan plan;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_rows& x) {
  return f(caf::meta::type_name("step_rows"), x.plan);
}

/// conductor -> the ranks of the stage before a replay: its rows, which they sent once and kept,
/// are wanted again. They compute nothing.
struct rows_again {
  step_plan plan;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rows_again& x) {
  return f(caf::meta::type_name("rows_again"), x.plan);
}

/// conductor -> ranks, when sequences ended and no step is due that could carry it.
struct slots_released {
  epoch_id epoch{};
  std::vector<slot_id> slots;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, slots_released& x) {
  return f(caf::meta::type_name("slots_released"), x.epoch, x.slots);
}

/// stage s -> stage s + 1, same tensor rank: the boundary. The tensor travels beside it by
/// reference, [rows, columns] of the wire's type.
struct partition_input {
  epoch_id epoch{};
  step_id step{};
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint8_t type = 0;    ///< troupe::dtype on the wire.
  std::uint64_t schema = 0; ///< Hash of the boundary schema's identity.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, partition_input& x) {
  return f(
    caf::meta::type_name("partition_input"), x.epoch, x.step, x.rows, x.columns, x.type, x.schema);
}

/// A token and the logarithm of its probability in the model's own distribution.
struct token_odds {
  token_id token = 0;
  real32 logprob = 0.0f;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, token_odds& x) {
  return f(caf::meta::type_name("token_odds"), x.token, x.logprob);
}

/// What one sequence got out of a step.
struct token_choice {
  slot_id slot{};
  token_id token = 0;
  real32 logprob;              ///< 0 where it was not asked for.
  std::uint8_t code = 0;       ///< 0 = a token; else troupe::errc + 1, and `token` means nothing.
  std::uint64_t digest = 0;    ///< XXH3 of the logits' bits, where asked for.
  std::vector<token_odds> top; ///< The most probable tokens, best first, where asked for.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, token_choice& x) {
  return f(
    caf::meta::type_name("token_choice"), x.slot, x.token, x.logprob, x.code, x.digest, x.top);
}

/// Publication owner (last stage, tensor rank 0) -> conductor. Its arrival is the vote of all
/// stages: the step is committed (DESIGN, "the dataflow is the vote").
struct step_output {
  epoch_id epoch{};
  step_id step{};
  std::vector<token_choice> choices; ///< One per entry with wants_output, in order.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_output& x) {
  return f(caf::meta::type_name("step_output"), x.epoch, x.step, x.choices);
}

/// A sequence whose state moves.
struct moved_slot {
  slot_id slot{};
  std::vector<page_id> pages;
  std::uint32_t length = 0; ///< Positions in the state.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, moved_slot& x) {
  return f(caf::meta::type_name("moved_slot"), x.slot, x.pages, x.length);
}

/// rank that held layers -> rank that holds them now: what follows, page by page.
struct state_manifest {
  epoch_id epoch{};
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0; ///< One past the last.
  std::vector<moved_slot> slots;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, state_manifest& x) {
  return f(caf::meta::type_name("state_manifest"), x.epoch, x.first_unit, x.last_unit, x.slots);
}

/// One page of these layers. The bytes travel beside it by reference, as the device keeps them.
struct state_page {
  epoch_id epoch{};
  page_id page{};
  std::uint32_t first_unit = 0;
  std::uint32_t last_unit = 0; ///< One past the last.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, state_page& x) {
  return f(caf::meta::type_name("state_page"), x.epoch, x.page, x.first_unit, x.last_unit);
}

/// What a rank holds of one sequence.
struct held_slot {
  slot_id slot{};
  std::uint32_t length = 0;     ///< Positions in the state.
  std::uint32_t rows_begin = 0; ///< Positions whose rows it keeps for the next stage ...
  std::uint32_t rows_end = 0;   ///< ... up to here.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, held_slot& x) {
  return f(caf::meta::type_name("held_slot"), x.slot, x.length, x.rows_begin, x.rows_end);
}

/// rank -> conductor, before it serves under a plan with other stages: the state that it has.
struct state_held {
  epoch_id epoch{};
  rank_id rank{};
  std::vector<held_slot> slots;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, state_held& x) {
  return f(caf::meta::type_name("state_held"), x.epoch, x.rank, x.slots);
}

} // namespace troupe::actors
