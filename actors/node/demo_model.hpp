#pragma once
// Where models lie on this host.

#include "config/result.hpp"
#include "config/settings.hpp"

#include <filesystem>

namespace troupe::actors {

/// The folder of the model that comes with the program: beside an installed program
/// (<prefix>/share/troupe/demo), else in the source tree that it was built from. Error: not_found.
result<std::filesystem::path> demo_model_folder();

/// The folder in which this node finds the model, the demo's resolved.
result<std::filesystem::path> model_folder_of(const cluster_settings& settings,
                                              const node_settings& node);

} // namespace troupe::actors
