#pragma once
// What a request asks of the sampler beyond the usual, checked before it is queued.

#include "actors/messages/clients.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Nothing if it asks for nothing. invalid_argument with the field, the value found and the range.
/// That a JSON schema is one that can be followed was checked by the gateway.
result<std::optional<answer_rules>> rules_of(const generate_request& wish,
                                             std::size_t vocabulary,
                                             const std::vector<token_id>& end_tokens);

} // namespace troupe::actors
