#include "actors/control/gateway.hpp"

#include "actors/control/system.hpp"
#include "compute/grammar/json_schema.hpp"

namespace troupe::actors {

namespace {

struct gateway_state {
  static inline const char* name = "gateway";

  gateway_state() = default;

  director_actor director;
  conductor_actor conductor;
  std::shared_ptr<const compute::tokenizer> words;
};

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self,
                                     director_actor director,
                                     conductor_actor conductor,
                                     std::shared_ptr<const compute::tokenizer> words) {
  self->state.director = std::move(director);
  self->state.conductor = std::move(conductor);
  self->state.words = std::move(words);
  return {
    [self](const node_hello& hello, const node_actor& node) {
      return self->delegate(self->state.director, hello, node);
    },
    [self](const generate_request& wish,
           const caf::strong_actor_ptr& client) -> caf::result<request_id> {
      auto ready = wish;
      if (ready.tokens.empty()) {
        constexpr bool with_start_token = true;
        auto tokens = self->state.words->encode(ready.prompt, with_start_token);
        if (!tokens)
          return to_caf(tokens.error());
        ready.tokens = std::move(*tokens);
        ready.prompt.clear();
      }
      // Here and not on the conductor's thread, which has steps to plan.
      if (!ready.schema.empty())
        if (auto compiled = compute::compile_schema(ready.schema); !compiled)
          return to_caf(with_context("the JSON schema", compiled.error()));
      return self->delegate(self->state.conductor, std::move(ready), client);
    },
    [self](const stream_attach& which, const caf::strong_actor_ptr& client) {
      return self->delegate(self->state.conductor, which, client);
    },
    [self](const request_cancel& which) { self->send(self->state.conductor, which); },
    [self](const terms_query& query) { return self->delegate(self->state.director, query); },
    [self](const status_query& query) { return self->delegate(self->state.director, query); },
    [self](const node_drain& which) { return self->delegate(self->state.director, which); },
    [self](const fault_order& order) { return self->delegate(self->state.director, order); },
    [self](const trace_order& order) { return self->delegate(self->state.director, order); },
    [self](const cluster_stop& stop) { self->send(self->state.director, stop); },
  };
}

} // namespace

gateway_actor spawn_gateway(caf::actor_system& system,
                            const director_actor& director,
                            const conductor_actor& conductor,
                            std::shared_ptr<const compute::tokenizer> words) {
  return system.spawn(gateway, director, conductor, std::move(words));
}

} // namespace troupe::actors
