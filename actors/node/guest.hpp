#pragma once
// Guests: nodes that are not in the cluster file. A guest asks the head what its cluster has agreed
// on, adds itself (plan/guest_settings), and joins as any node does.

#include "actors/node/node.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::actors {

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
