#pragma once
// A node: one process of the cluster, with the ranks that it hosts; the head also hosts director,
// conductor and gateway.

#include "config/result.hpp"
#include "config/settings.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace troupe::actors {

/// What a node that is not in the cluster file says of itself (actors/node/guest.hpp).
struct guest_terms {
  std::string section;         ///< Its [[node]].
  std::string settings_digest; ///< Of what the nodes of the file agree on.
};

struct node_options {
  cluster_settings settings;
  std::string name;                 ///< Of a [[node]] in the settings.
  std::filesystem::path run_folder; ///< Where the head writes its control port (run_folder.hpp).
  /// The plan as a picture, for the page of the head; empty text: there is none. May be null.
  std::function<std::string()> draw_plan = {};
  std::optional<guest_terms> guest = {};
};

/// Runs a node in this thread until the cluster stops it or SIGINT / SIGTERM arrives (the caller
/// has blocked both in every thread). Joins the cluster, whatever the order of start: waits for the
/// head and the head for the others, up to deadlines.join_ms. Errors are for people and say which
/// node, rank, file or peer. Returns after everything it started has ended.
result<void> run_node(const node_options& options);

} // namespace troupe::actors
