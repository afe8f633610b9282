#include "actors/conductor/answer_checks.hpp"

#include "actors/sampling.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

result<std::optional<answer_rules>> rules_of(const generate_request& wish,
                                             std::size_t vocabulary,
                                             const std::vector<token_id>& end_tokens) {
  if (wish.bias.empty() && wish.top_logprobs == 0 && wish.schema.empty())
    return std::optional<answer_rules>{};
  answer_rules made;
  made.bias = wish.bias;
  std::sort(made.bias.begin(), made.bias.end(), [](const auto& one, const auto& other) {
    return one.token < other.token;
  });
  made.top_logprobs = wish.top_logprobs;
  const auto biases = to_biases(made.bias);
  compute::sampling_rules checked;
  checked.biases = biases;
  checked.top = made.top_logprobs;
  if (auto valid = compute::validate_rules(checked); !valid)
    return valid.error();
  if (!biases.empty() && biases.back().token >= vocabulary)
    return error{errc::invalid_argument,
                 fmt::format("logit_bias names token {}, but the model's vocabulary has 0 ... {}",
                             biases.back().token,
                             vocabulary - 1)};
  if (!wish.schema.empty()) {
    if (wish.ignore_end || end_tokens.empty())
      return error{errc::invalid_argument,
                   wish.ignore_end
                     ? "a JSON schema ends the answer; ignore_end does not go with it"
                     : "a JSON schema needs a model with an end token, and this one has none"};
    made.schema = wish.schema;
    made.ends = end_tokens;
  }
  return std::optional{std::move(made)};
}

} // namespace troupe::actors
