#pragma once
// One request for text: an actor that lives as long as its answer. It is the conductor's client, so
// its end, whatever the reason, withdraws what it has asked for from every rank.

#include "actors/serve/http.hpp"
#include "actors/serve/service.hpp"

namespace troupe::actors::serve {

/// Answers POST /v1/completions, or /v1/chat/completions where `chat`.
void spawn_completion(caf::actor_system& system,
                      const service_handle& shared,
                      exchange_handle exchange,
                      bool chat);

/// Answers POST /tokenize and /detokenize, on the framework's pool: a long text takes a while.
void spawn_words(caf::actor_system& system, const service_handle& shared, exchange_handle exchange);

} // namespace troupe::actors::serve
