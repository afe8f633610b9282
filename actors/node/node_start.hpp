#pragma once
// What a node makes sure of before it opens a socket: that it can compute as asked, over the
// devices that were named, with a model and a tokenizer that belong together.

#include "compute/model.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/result.hpp"
#include "config/settings.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>

namespace troupe::actors {

struct model_files {
  std::shared_ptr<const compute::model> model;
  std::shared_ptr<const compute::tokenizer> words;
  std::filesystem::path words_folder; ///< Of tokenizer and chat template.
};

/// `node`: position in settings.nodes, here and below. Error: invalid_config that points at the
/// key.
result<void> choose_instruction_set(const cluster_settings& settings, std::size_t node);

/// Errors: invalid_config that points at the key, with the devices that UCX finds.
result<void> check_devices(const cluster_settings& settings, std::size_t node);

/// Errors: those of model::open and tokenizer::open; mismatch where the tokenizer is another
/// model's.
result<model_files> open_model_files(const cluster_settings& settings, std::size_t node);

} // namespace troupe::actors
