#pragma once
// The tokenizer that goes with the model of a cluster.

#include "compute/model.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/settings.hpp"

#include <memory>

namespace troupe::actors {

/// Opens the tokenizer of the model's folder, or of model.tokenizer where that is set. Its ids are
/// rows of the model (rows B17 and C09). Errors: as compute::tokenizer::open; mismatch, with both
/// counts, when it belongs to another model.
result<std::unique_ptr<compute::tokenizer>> open_tokenizer(const cluster_settings& settings,
                                                           const compute::model& model);

} // namespace troupe::actors
