#pragma once
// What this host can do, measured with the kernels, the threads and the reductions that ranks use:
// about a second, once a host and type of weights. The figures are kept in the user's cache folder
// ($XDG_CACHE_HOME/troupe, else ~/.cache/troupe); what cannot be read there is measured again.

#include "actors/forecast/host_speed.hpp"
#include "actors/forecast/stage_cost.hpp"
#include "config/dtype.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::actors {

/// What the figures depend on. Figures for another key are not these.
struct calibration_key {
  std::string processor; ///< As the system calls it.
  std::string instruction_set;
  std::string version; ///< Of this program.
  std::size_t cores = 1;
  dtype hold = dtype::f32;

  friend bool operator==(const calibration_key&, const calibration_key&) = default;
};

/// The key of this host.
calibration_key key_of_this_host(dtype hold, const std::string& version);

struct calibration {
  host_speed speed;
  link_speed reducing; ///< Sums of two ranks through shared memory.

  friend bool operator==(const calibration&, const calibration&) = default;
};

/// Measures. Writes a model of 22 MB of weights into the temporary folder and takes it away again.
/// Errors: no room for it, threads that cannot be started.
result<calibration> measure_here(const calibration_key& key);

/// $XDG_CACHE_HOME/troupe or ~/.cache/troupe; empty where neither is known.
std::filesystem::path cache_folder();

/// What was kept for this key; nothing where there is none, it is damaged, or it is for another
/// key.
std::optional<calibration> find_calibration(const std::filesystem::path& folder,
                                            const calibration_key& key);

/// Keeps it; the file is whole or not there at all.
result<void> keep_calibration(const std::filesystem::path& folder,
                              const calibration_key& key,
                              const calibration& found);

} // namespace troupe::actors
