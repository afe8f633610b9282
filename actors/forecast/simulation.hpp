#pragma once
// A cluster in virtual time: the real schedule (actors/conductor/schedule.hpp) plans steps, stages
// work through them in order, and a queue of events stands for threads, wires and clocks. Nothing
// sleeps and nothing is drawn by chance: the same input gives the same figures. One thread.

#include "actors/forecast/stage_cost.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <vector>

namespace troupe::actors {

/// What clients ask for: so many of them, each with its next request as soon as the last one ended.
struct offered_load {
  std::size_t streams = 1;
  std::size_t requests = 1; ///< Of all clients together.
  std::size_t prompt = 1;   ///< Tokens.
  std::size_t answer = 1;
};

struct simulated_request {
  std::size_t prompt = 0;
  std::size_t answer = 0;
  double submitted_s = 0;
  double first_token_s = 0; ///< From the submission on, as total_s.
  double total_s = 0;
};

/// What a stage did.
struct stage_use {
  double work_s = 0;         ///< Arithmetic, as long as it took with the cores that it got.
  double sum_s = 0;          ///< Sums over its tensor group.
  double boundary_bytes = 0; ///< Sent to the next stage, all links.
  double sum_bytes = 0;      ///< Sent by each member of the group.
  std::size_t messages = 0;  ///< To the next stage, of each link.
};

struct simulated_run {
  std::vector<simulated_request> requests; ///< In order of submission.
  std::vector<stage_use> stages;
  std::size_t steps = 0;
  std::size_t prompt_tokens = 0;
  std::size_t answer_tokens = 0;
  double seconds = 0;       ///< From the first submission to the last token.
  double first_heard_s = 0; ///< When the first token of all came.

  /// Tokens after the first one of each answer, by the time from the first token on.
  double decode_rate() const;

  /// Answer tokens by the whole time.
  double answer_rate() const;

  double mean_first_token_s() const;

  /// Until the first `count` requests had their first tokens: those that were there at the start.
  double filled_s(std::size_t count) const;

  /// The part of the stages' time in which they had nothing to do.
  double bubble() const;
};

/// Every answer gets as many tokens as it may have. Errors: what the schedule refuses (a prompt
/// that does not fit into the context or the pages).
result<simulated_run> simulate(const forecast_cluster& cluster, const offered_load& load);

/// Requests of their own sizes (`prompt` and `answer` of each), in that order, by so many clients.
result<simulated_run> simulate(const forecast_cluster& cluster,
                               const std::vector<simulated_request>& wanted,
                               std::size_t streams);

} // namespace troupe::actors
