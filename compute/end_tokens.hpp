#pragma once
// The tokens that end a text. Three files of a model folder may name them and need not agree.

#include "compute/weights/json_object.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <vector>

namespace troupe::compute {

/// The union, ascending, of "eos_token_id" in config.json and generation_config.json (an id or a
/// list) and "eos_token" in tokenizer_config.json (looked up in its "added_tokens_decoder"). Files
/// other than config.json may be absent.
result<std::vector<token_id>> read_end_tokens(const std::filesystem::path& folder,
                                              const json_object& config);

} // namespace troupe::compute
