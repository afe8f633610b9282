#pragma once
// The settings of a cluster that guests join: what strangers are told of them, and what they are
// with a guest among the nodes.

#include "config/result.hpp"
#include "config/settings.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// All settings but those that a host has for itself, as the text of a cluster file without a model
/// path.
std::string shared_cluster_text(const cluster_settings& settings);

/// The [[node]] of settings.nodes[node], as far as the others have to know it.
std::string node_text(const cluster_settings& settings, std::size_t node);

/// "key='text'", as it follows --set.
std::string override_with(std::string_view key, std::string_view text);

/// The settings of a file that says all that `settings` does, with `guest` behind the other nodes
/// or in the place of the one that has its name, and with as many stages as all ranks make. Errors:
/// invalid_config where they do not go together: ranks that make no whole stage, an address that is
/// taken.
result<cluster_settings> parse_with_guest(const cluster_settings& settings,
                                          const node_settings& guest,
                                          const std::string& section,
                                          std::vector<std::string> overrides);

/// These settings, all that hosts have for themselves included, with the node of `section` as
/// parse_with_guest adds it.
result<cluster_settings> with_guest(const cluster_settings& settings, const std::string& section);

} // namespace troupe::actors
