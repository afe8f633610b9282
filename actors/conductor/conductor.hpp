#pragma once
// The conductor: keeps every live request, plans steps, commits them when the last stage's output
// arrives, and publishes text. It alone decides what all ranks do next. Lives on its own reactor,
// on the head.

#include "actors/conductor/journal.hpp"
#include "actors/conductor/schedule.hpp"
#include "actors/faults.hpp"
#include "actors/histogram.hpp"
#include "actors/messages.hpp"
#include "actors/plan/plan.hpp"
#include "actors/rank/board.hpp"
#include "actors/wires/neighbours.hpp"
#include "actors/wires/reactor.hpp"
#include "compute/model.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <memory>

namespace troupe::actors {

/// What the conductor shows of itself; its thread writes, any thread reads.
struct conductor_board {
  using counter = std::atomic<std::uint64_t>;
  counter queued{0};
  counter running{0};
  counter finished{0};
  counter failed{0};
  counter cancelled{0};
  counter prompt_tokens{0};
  counter answer_tokens{0};
  counter steps{0};
  counter steps_in_flight{0};
  counter pages_total{0};
  counter pages_used{0};
  counter refused{0};
  latency_histogram queued_us{latency_bounds_us};
  latency_histogram first_token_us{latency_bounds_us};
  latency_histogram between_tokens_us{latency_bounds_us};
  latency_histogram whole_us{latency_bounds_us};
  size_histogram step_rows{size_bounds};
  size_histogram step_requests{size_bounds};

  conductor_gauge read() const;
};

/// What the conductor is given at birth. Pointers outlive it.
struct conductor_setup {
  schedule_limits limits;
  std::vector<token_id> end_tokens;
  std::size_t vocabulary = 0; ///< Of the model: ids in prompts lie below it.
  std::shared_ptr<const compute::tokenizer> words;
  bool one_step_a_stage = true;             ///< As many steps in flight as there are stages.
  std::shared_ptr<actors::journal> journal; ///< Null: none is kept.
  std::string remedy;                ///< Added to the news that a value of a request is not finite.
  std::size_t max_prompt_tokens = 0; ///< 0: what the context holds.
  std::size_t max_new_tokens = 0;    ///< 0: what the context holds.
  std::chrono::milliseconds step_deadline{};
  std::chrono::milliseconds connect_deadline{};
  std::chrono::milliseconds drain_deadline{};
  std::chrono::milliseconds request_deadline{}; ///< 0: none.
  std::chrono::milliseconds resume_deadline{};  ///< Live requests wait so long for an epoch.
  conductor_board* board = nullptr;
  neighbours* here = nullptr;
  fault_desk* faults = nullptr;
  const cluster_settings* settings = nullptr;
  transport::transport* wires = nullptr;
  reactor* home = nullptr;
  director_actor director; ///< Hears rank_joined (with conductor_rank) and rank_fault.
};

/// What follows from settings, plan and model; opens the journal. The rest is the process's to fill
/// in. Errors: those of journal::open.
result<conductor_setup> prepare_conductor(const cluster_settings& settings,
                                          const cluster_plan& plan,
                                          const compute::model& model,
                                          std::shared_ptr<const compute::tokenizer> words);

/// The "rank" that the conductor uses in rank_joined and rank_fault.
inline constexpr rank_id conductor_rank = static_cast<rank_id>(transport::conductor_key);

/// Spawns the conductor on its reactor; call it on the reactor's thread before run().
conductor_actor spawn_conductor(caf::actor_system& system, conductor_setup setup);

} // namespace troupe::actors
