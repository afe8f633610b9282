#pragma once
// What the page shows, as one JSON object on one line: an event of GET /events.

#include "actors/messages/clients.hpp"
#include "actors/serve/service.hpp"

#include <string>

namespace troupe::actors::serve {

std::string overview_json(const cluster_status& known,
                          const cluster_pulse::beat& pulse,
                          const std::string& model);

} // namespace troupe::actors::serve
