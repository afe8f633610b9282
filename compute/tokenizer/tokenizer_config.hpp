#pragma once
// The settings beside a tokenizer: tokenizer_config.json and special_tokens_map.json.

#include "compute/tokenizer/added_tokens.hpp"
#include "config/result.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::compute {

/// What the two files say about ids and text; their other keys concern other programs.
struct tokenizer_config {
  std::vector<added_token> added; ///< "added_tokens_decoder"
  std::optional<std::string> bos, eos, unk;
  std::optional<bool> add_bos, add_eos; ///< Where said, they win over the post-processor.
  std::optional<bool> legacy;           ///< Of Llama: see sentencepiece_tokenizer.hpp.
};

/// Files that are not there say nothing. invalid_model: a damaged file.
result<tokenizer_config> read_tokenizer_config(const std::filesystem::path& model_folder);

} // namespace troupe::compute
