#pragma once
// What must hold between the settings of a cluster file: names that exist, addresses that do not
// collide, sums that work, and no open door to a network.

#include "config/settings.hpp"
#include "config/source_mark.hpp"

namespace troupe {

/// Adds one message a mistake. Needs settings whose keys were all read, with head and advertised
/// addresses filled in.
void check_settings(const cluster_settings& settings, mistakes& found);

} // namespace troupe
