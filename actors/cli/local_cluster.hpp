#pragma once
// The nodes of a cluster that belong on this host, started by a command and ended by it, with a
// client of the whole cluster. One thread.

#include "actors/cli/command.hpp"
#include "actors/control/client.hpp"
#include "actors/node/launcher.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

struct local_options {
  cluster_options cluster;
  std::filesystem::path run_folder; ///< Made if need be; removed with the cluster.
  bool show_logs = false;
  bool quiet = false; ///< No progress.
};

class local_cluster {
public:
  /// Starts the nodes of this host and waits until the cluster serves. Ends early, with everything
  /// stopped, where a node gives up (its own words), the deadlines for joining and loading pass, or
  /// a stop signal comes (cancelled).
  static result<std::unique_ptr<local_cluster>> start(const cluster_settings& settings,
                                                      const local_options& options);

  /// For the time of one command: in a run folder of its own, without HTTP. Also an error where not
  /// all nodes belong on this host.
  static result<std::unique_ptr<local_cluster>> start_for_command(const cluster_settings& settings,
                                                                  cluster_options own,
                                                                  bool show_logs,
                                                                  bool quiet);

  const std::filesystem::path& run_folder() const { return options_.run_folder; }

  /// As stop(), without a word.
  ~local_cluster();

  actors::cluster_client& client() { return *client_; }

  /// Nodes of this host that have not ended.
  std::size_t running() const { return nodes_->running(); }

  /// Whether a node of this host runs, or will be started again by tend().
  bool alive() const { return nodes_->alive(); }

  std::optional<error> find_failure() { return nodes_->find_failure(); }

  /// Looks once: starts again what ended by a fault (settings.recovery) and kills, to that end, a
  /// node of this host that the cluster gave up while its process lives. Returns what happened, a
  /// line for people each. Error: a node ended for good.
  result<std::vector<std::string>> tend();

  /// Ends all nodes of this host and takes the run folder away. Error: as launcher::stop.
  result<void> stop();

private:
  local_cluster(const cluster_settings& settings, const local_options& options)
    : settings_(settings), options_(options) {}

  result<void> wait_until_serving();
  result<bool> look(class progress_line& progress);
  result<void> end(std::chrono::milliseconds deadline);

  cluster_settings settings_;
  local_options options_;
  std::unique_ptr<actors::launcher> nodes_;
  std::unique_ptr<actors::cluster_client> client_;
  std::chrono::steady_clock::time_point
    asked_{};                           ///< When the cluster was last asked for its state.
  std::map<std::string, pid_t> joined_; ///< The processes that the cluster knew as its nodes.
};

/// A client of the cluster of that file if it runs; nullptr where it does not. Errors: those of
/// cluster_client::connect but unreachable.
result<std::unique_ptr<actors::cluster_client>> find_running(const cluster_settings& settings);

/// A cluster that runs, for a command that needs one.
struct running_cluster {
  cluster_settings settings;
  std::unique_ptr<actors::cluster_client> client;
};

/// The cluster of the file that the options name. Errors: those of read_cluster and find_running,
/// and unreachable where it does not run, in words that end with `and_so`.
result<running_cluster> need_running(const cluster_options& options, std::string_view and_so = "");

} // namespace troupe::cli
