#pragma once
// The fields of a request that ask for more than text, or bind the answer: logprobs, logit_bias,
// response_format. Heavy: includes the JSON library.

#include "actors/serve/api_request.hpp"
#include "actors/serve/json_values.hpp"

namespace troupe::actors::serve {

// As the takers of json_values.hpp: what would have been right, or nothing when it was.

/// Chat: true or false.
std::string take_chat_logprobs(const nlohmann::json& from, completion_wish& into);

/// Chat: how many likely tokens beside each one.
std::string take_top_logprobs(const nlohmann::json& from, completion_wish& into);

/// Completions: how many likely tokens beside each one; false is the same as absent.
std::string take_text_logprobs(const nlohmann::json& from, completion_wish& into);

/// {"token id": -100 ... 100}; ids lie below `vocabulary`.
std::string
take_logit_bias(const nlohmann::json& from, std::size_t vocabulary, completion_wish& into);

/// text, json_object or json_schema. The schema itself is read when the order of its properties is
/// known (read_schema).
std::string take_response_format(const nlohmann::json& from, completion_wish& into);

/// Fills wish.schema where response_format is json_schema: from the body once more, because its
/// properties come in the order in which the client wrote them. The mistake, if it is no schema
/// that an answer can follow.
std::optional<api_error> read_schema(std::string_view body, completion_wish& into);

} // namespace troupe::actors::serve
