#pragma once
// The tokenizer of a tokenizer.json.

#include "compute/tokenizer/added_tokens.hpp"
#include "compute/tokenizer/bpe.hpp"
#include "compute/tokenizer/normalizer.hpp"
#include "compute/tokenizer/pre_tokenizer.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "compute/tokenizer/tokenizer_config.hpp"

#include <filesystem>
#include <memory>

namespace troupe::compute {

/// Added tokens, then normaliser, then added tokens of the normalised text, then words, then BPE:
/// the order of Hugging Face's tokenizers 0.2x.
class json_tokenizer final : public tokenizer {
public:
  /// Errors as tokenizer::open. `config` adds and overrides added tokens by their content.
  static result<std::unique_ptr<tokenizer>> read(const std::filesystem::path& file,
                                                 const tokenizer_config& config);

private:
  struct steps {
    normalizer normal;
    pre_tokenizer words;
    std::unique_ptr<bpe> model;
    added_token_matcher raw, normalized; ///< By the text in which they are looked for.
  };

  class reader;

  json_tokenizer(identity who, steps how);

  result<void> encode_text(std::string_view text, std::vector<token_id>& out) const override;

  steps steps_;
};

} // namespace troupe::compute
