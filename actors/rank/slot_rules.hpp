#pragma once
// What one live request asks of the sampler beyond the usual, as the publication owner keeps it.

#include "actors/messages/steps.hpp"
#include "compute/grammar/constraint.hpp"
#include "compute/sampler.hpp"

#include <memory>
#include <vector>

namespace troupe::actors {

struct slot_rules {
  std::vector<compute::logit_bias> biases;
  std::uint32_t top = 0;
  std::unique_ptr<compute::constraint> follows; ///< Null: any text.

  /// Its place in the grammar is that behind rules.so_far. Errors are broken promises of the
  /// conductor, which has checked the request.
  static result<std::shared_ptr<slot_rules>> make(const answer_rules& rules,
                                                  compute::constraint_maker& grammars);

  /// As compute::sample, by the rules; the token is then part of the answer.
  result<compute::choice> choose(std::span<float> logits,
                                 const compute::sampling& wish,
                                 std::span<const token_id> history,
                                 std::uint64_t position);
};

} // namespace troupe::actors
