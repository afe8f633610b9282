#include "actors/rank/slot_rules.hpp"

#include "actors/sampling.hpp"

namespace troupe::actors {

result<std::shared_ptr<slot_rules>> slot_rules::make(const answer_rules& rules,
                                                     compute::constraint_maker& grammars) {
  auto made = std::make_shared<slot_rules>();
  made->biases = to_biases(rules.bias);
  made->top = rules.top_logprobs;
  if (rules.schema.empty())
    return made;
  auto follows = grammars.make(rules.schema, rules.ends);
  if (!follows)
    return follows.error();
  for (const auto token : rules.so_far)
    if (auto accepted = (*follows)->accept(token); !accepted)
      return accepted.error();
  made->follows = std::move(*follows);
  return made;
}

result<compute::choice> slot_rules::choose(std::span<float> logits,
                                           const compute::sampling& wish,
                                           std::span<const token_id> history,
                                           std::uint64_t position) {
  compute::sampling_rules rules;
  rules.biases = biases;
  rules.top = top;
  if (follows) {
    auto allowed = follows->allowed();
    if (!allowed)
      return allowed.error();
    rules.allowed = *allowed;
  }
  auto made = compute::sample(logits, wish, history, position, rules);
  if (made && follows)
    if (auto accepted = follows->accept(made->token); !accepted)
      return accepted.error();
  return made;
}

} // namespace troupe::actors
