#pragma once
// Where the nodes of one cluster file on one host meet: a private folder in which the head says how
// it is reached. ${XDG_RUNTIME_DIR:-/tmp}/troupe-<uid>/<hash of the cluster file's path>, mode
// 0700.
//
// Any thread; the files are written whole or not at all.

#include "config/result.hpp"
#include "config/settings.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/types.h>

namespace troupe::actors {

/// The folder that everyone who names the same cluster file finds. It need not be there.
std::filesystem::path run_folder_for(const cluster_settings& settings);

/// Makes it, and the folder above it. Errors: io_error, also where one of them belongs to another
/// user or is open to others.
result<void> make_run_folder(const std::filesystem::path& folder);

/// Makes a folder of its own for a cluster that this process starts for itself, so that many at
/// once do not meet. Also removes those whose process is gone. Errors: as make_run_folder.
result<std::filesystem::path> make_unique_run_folder(const cluster_settings& settings);

/// What the head says of itself, file control.json.
struct control_point {
  std::uint16_t port = 0;
  std::string cluster;
  std::string node;
  std::string url = {};      ///< Of its HTTP server; empty: it has none.
  pid_t pid = 0;             ///< Filled in by write().
  std::uint64_t started = 0; ///< Of that process, in clock ticks since boot; by write().
};

/// The head's hold on a run folder: one head a folder. Ends with the object or the process.
class control_file {
public:
  /// Makes the folder if need be. Errors: those of make_run_folder; not_now when another head that
  /// is alive holds it; names its process.
  static result<control_file> claim(const std::filesystem::path& folder);

  control_file(control_file&& other) noexcept;
  control_file& operator=(control_file&& other) noexcept;
  ~control_file(); ///< Takes its files away, and the folder if nothing else is in it.

  /// Publishes; call it after the port is bound.
  result<void> write(control_point point);

private:
  control_file() = default;

  std::filesystem::path folder_;
  int lock_ = -1;
};

/// The head that is alive. Errors: not_found when there is none, or a file of a process that is
/// gone; io_error.
result<control_point> read_control(const std::filesystem::path& folder);

/// Removes the folder with everything in it; a folder that is gone is fine.
void remove_run_folder(const std::filesystem::path& folder);

} // namespace troupe::actors
