#pragma once
// The gateway: the one actor that is published on the head's control port. Turns prompts into
// tokens and hands everything on to director and conductor, neither of which ever waits for it.

#include "actors/messages.hpp"
#include "compute/tokenizer/tokenizer.hpp"

#include <memory>

namespace troupe::actors {

gateway_actor spawn_gateway(caf::actor_system& system,
                            const director_actor& director,
                            const conductor_actor& conductor,
                            std::shared_ptr<const compute::tokenizer> words);

} // namespace troupe::actors
