#pragma once
// What the commands of the program share. Data goes to standard output, everything else to standard
// error; an error is printed once, as "troupe: error: ...", and becomes the exit code.

#include "config/cluster_file.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::cli {

/// Which cluster a command is about.
struct cluster_options {
  std::string file;                   ///< Empty: the demo.
  std::vector<std::string> overrides; ///< What follows --set.
};

/// Reads the cluster file, or the demo's text.
result<cluster_settings> read_cluster(const cluster_options& options,
                                      security_files files = security_files::check);

/// Prints the error; returns the exit code.
int fail(const error& what);

/// Prints "troupe: warning: ...".
void warn(const std::string& what);

/// Error io_error, with the system's word.
result<void> write_file(const std::filesystem::path& file, const std::string& text);

/// "1.5 MB": powers of 1000, three digits.
std::string bytes_text(std::uint64_t bytes);

/// "1 answer", "3 answers".
std::string counted(std::uint64_t count, const std::string& noun);

/// SIGINT, SIGTERM and SIGHUP as values instead of interruptions. Blocked by main() before any
/// thread starts, so that only these functions see them. SIGPIPE is ignored: a closed pipe is an
/// error of writing.
void block_stop_signals();

/// Waits for one; 0 when none came in time.
int wait_for_stop_signal(std::chrono::milliseconds time);

} // namespace troupe::cli
