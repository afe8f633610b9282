#pragma once
// Requests and answers of `troupe generate` as lines of text and JSON.

#include "actors/control/client.hpp"
#include "actors/forecast/simulation.hpp"
#include "config/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// One request a line; blank lines do not count. A line that starts with `{` is a JSON object:
/// prompt or tokens, and max_tokens, temperature, top_k, top_p, min_p, repetition_penalty,
/// frequency_penalty, presence_penalty, logit_bias, top_logprobs, schema, seed, stop (string or
/// list), ignore_end; what it does not say comes from `defaults`. Errors: invalid_argument with
/// `name` and the line's number, also for unknown keys.
result<std::vector<actors::text_request>> read_prompt_lines(std::string_view text,
                                                            std::string_view name,
                                                            const actors::text_request& defaults);

/// One answer as a JSON object in one line. Reals are written so that they read back to the same
/// bits; digests are hexadecimal strings. `forecast`: what was to be expected of its times; may be
/// null.
std::string answer_json(std::size_t index,
                        const actors::text_request& request,
                        const actors::text_answer& answer,
                        const actors::simulated_request* forecast = nullptr);

} // namespace troupe::cli
