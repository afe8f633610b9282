#pragma once
// The one table of all settings. Reading, messages about unknown keys, `troupe config` and
// docs/configuration.md walk it; a key that is not here does not exist.

#include "config/setting.hpp"
#include "config/settings.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A table of the file, bound to the settings that it fills.
struct setting_section {
  std::string_view name;  ///< "model"; "node" for each [[node]].
  std::string prefix;     ///< Of full names: "model.", "node[0].".
  std::string_view about; ///< One sentence for the reference.
  std::vector<setting> settings;
};

/// The sections in the order of the reference, one "node" for each of settings.nodes. The slots
/// point into `settings`, whose vectors must not grow while the table is in use.
std::vector<setting_section> sections_of(cluster_settings& settings);

} // namespace troupe
