#pragma once
// Which files of a folder are the model's weights.

#include "config/result.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::compute {

/// Names are relative to the folder.
struct model_files {
  std::string index;                ///< The index file; empty where there is none.
  std::vector<std::string> weights; ///< Without an index: the files by name, absent parts included.
};

/// Looks for an index; then for model.safetensors; then for numbered parts; then for a single
/// safetensors file of any name. Fails with not_found or invalid_model and names what is there.
result<model_files> find_model_files(const std::filesystem::path& folder);

} // namespace troupe::compute
