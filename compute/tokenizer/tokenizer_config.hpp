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
  std::optional<bool> add_bos, add_eos; ///< "add_bos_token", "add_eos_token"
  /// The class is one that rebuilds a tokenizer.json's post-processor from those two, as Llama's
  /// does in transformers 4 (5 leaves the word to the file); for other classes they mean nothing.
  bool flags_win = false;
  std::optional<bool> legacy; ///< Of Llama: see sentencepiece_tokenizer.hpp.
};

/// Files that are not there say nothing. invalid_model: a damaged file.
result<tokenizer_config> read_tokenizer_config(const std::filesystem::path& model_folder);

} // namespace troupe::compute
