#pragma once
// Guests: nodes that are not in the cluster file. A guest asks the head what its cluster has agreed
// on, adds itself, and joins as any node does; the head adds it in turn, for as long as it stays.

#include "actors/node.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::actors {

/// All settings but those that a host has for itself, as the text of a cluster file without a model
/// path.
std::string shared_cluster_text(const cluster_settings& settings);

/// The [[node]] of settings.nodes[node], as far as the others have to know it.
std::string node_text(const cluster_settings& settings, std::size_t node);

/// These settings with the node of `section` behind the others, or in the place of the one that has
/// its name. Errors: invalid_config where they do not go together: ranks that make no whole stage,
/// an address that is taken.
result<cluster_settings> with_guest(const cluster_settings& settings, const std::string& section);

struct guest_wish {
  std::string host; ///< Of the head.
  std::uint16_t port = 0;
  std::string name;                   ///< Of the new node.
  std::filesystem::path model;        ///< Where this host has the model.
  std::vector<std::string> overrides; ///< "node.<name>.threads=2", "security.secret_file=...".
};

/// Asks the head for its terms and makes of them what run_node needs. Errors: those of reading
/// settings, of control_plane::connect, and not_now where no answer comes in time.
result<node_options> make_guest(const guest_wish& wish);

} // namespace troupe::actors
