#pragma once
// Starts the nodes of a cluster file that belong on this host, each as a process of its own, and
// ends them. One thread owns a launcher: a node dies with the thread that started it, so that
// nobody is left when the parent is killed (row E05).

#include "config/result.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace troupe::actors {

struct launch_options {
  std::string file;                   ///< The cluster file as given; empty: the demo.
  std::vector<std::string> overrides; ///< What followed --set.
  std::filesystem::path run_folder;   ///< Each node writes <name>.log there.
  bool show_logs = false;             ///< Also on standard error, each line after the node's name.
};

/// What happens to a node that ended by a fault.
struct restart_policy {
  std::size_t restarts = 0;          ///< In a row; 0: the launcher reports its end as a failure.
  std::chrono::milliseconds pause{}; ///< Before the first; doubles with each, up to 30 s.
};

/// The nodes whose addresses belong to this host, as positions in settings.nodes.
std::vector<std::size_t> nodes_of_this_host(const cluster_settings& settings);

class launcher {
public:
  /// Starts `troupe node` for each of `nodes`. Error: io_error; nothing runs then.
  static result<std::unique_ptr<launcher>> start(const cluster_settings& settings,
                                                 const std::vector<std::size_t>& nodes,
                                                 const launch_options& options);

  /// Kills whatever stop() was not asked to end.
  ~launcher();

  launcher(const launcher&) = delete;
  launcher& operator=(const launcher&) = delete;

  /// Nodes that have not ended.
  std::size_t running() const noexcept;

  /// Whether a node runs, or will be started again by tend().
  bool alive() const noexcept;

  /// Looks once at all nodes, without waiting. The first one that ended with an error, with its own
  /// words: what it printed, or the signal and the end of its log. Never called: nothing is reaped.
  std::optional<error> find_failure();

  /// Looks once at all nodes, without waiting, and starts again what ended by a fault, when its
  /// pause is over. Returns what happened, a line for people each. Error: a node has used its
  /// restarts up, or cannot be started; what find_failure() says.
  result<std::vector<std::string>> tend(const restart_policy& policy);

  /// The process of a node; nothing when there is no such node here, or it does not run.
  std::optional<pid_t> process_of(const std::string& name) const;

  /// Kills a node that is out of the cluster's reach; tend() starts it again.
  void kill(const std::string& name);

  /// Ends all nodes in order: the head first, since it lets requests end and tells the others; then
  /// those that are left; SIGTERM, and SIGKILL after `deadline`. Returns once none is left. Error:
  /// timed_out, with the names of the nodes that had to be killed.
  result<void> stop(std::chrono::milliseconds deadline);

private:
  class child;

  launcher() = default;

  void show_new_lines();

  std::vector<std::unique_ptr<child>> children_; ///< The head first, if it is one of them.
  bool show_logs_ = false;
};

} // namespace troupe::actors
