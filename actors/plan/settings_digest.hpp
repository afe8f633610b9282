#pragma once
// What all nodes must agree on in their cluster files, as one digest.

#include "config/settings.hpp"

#include <string>

namespace troupe::actors {

/// Over model dtype and context, parallel, state, schedule, and the names and ranks of the nodes;
/// not over paths, addresses, threads and deadlines, which may differ from host to host.
std::string settings_digest(const cluster_settings& settings);

} // namespace troupe::actors
