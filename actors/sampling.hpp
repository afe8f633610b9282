#pragma once
// How a token is chosen, as it travels and as the sampler takes it.

#include "actors/messages/steps.hpp"
#include "compute/sampler.hpp"

#include <vector>

namespace troupe::actors {

/// The fields that both have; what only one has keeps its default.
template <class To, class From>
To with_fields_of(const From& wish) {
  To made;
  made.temperature = wish.temperature;
  made.top_k = wish.top_k;
  made.top_p = wish.top_p;
  made.min_p = wish.min_p;
  made.repetition_penalty = wish.repetition_penalty;
  made.frequency_penalty = wish.frequency_penalty;
  made.presence_penalty = wish.presence_penalty;
  made.seed = wish.seed;
  made.stream = wish.stream;
  return made;
}

inline compute::sampling to_sampling(const sampling_choice& wish) {
  return with_fields_of<compute::sampling>(wish);
}

inline sampling_choice to_choice(const compute::sampling& wish) {
  return with_fields_of<sampling_choice>(wish);
}

inline std::vector<compute::logit_bias> to_biases(const std::vector<token_bias>& given) {
  std::vector<compute::logit_bias> made;
  for (const auto& one : given)
    made.push_back({one.token, one.bias});
  return made;
}

} // namespace troupe::actors
