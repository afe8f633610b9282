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
  std::string_view name;  ///< "model"; "node" for each [[node]], "fault" for each [[fault]].
  std::string prefix;     ///< Of full names: "model.", "node[0].".
  std::string_view about; ///< One sentence for the reference.
  std::vector<setting> settings;
};

/// Whether the file writes the section as a list of tables ("host" is one of scenarios).
inline bool is_list(std::string_view section) {
  return section == "node" || section == "fault" || section == "host";
}

/// As it stands in the file: "[model]", "[[node]]".
std::string header_of(std::string_view section);

/// The sections in the order of the reference, one "node" for each of settings.nodes and one
/// "fault" for each of settings.faults. The slots point into `settings`, whose vectors must not
/// grow while the table is in use.
std::vector<setting_section> sections_of(cluster_settings& settings);

} // namespace troupe
