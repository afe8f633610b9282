#pragma once
// The tokenizer of a tokenizer.model, through the sentencepiece library.

#include "compute/tokenizer/added_tokens.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "compute/tokenizer/tokenizer_config.hpp"

#include <filesystem>
#include <memory>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace troupe::compute {

/// BPE and unigram models alike, normalisation included. bos goes in front unless
/// tokenizer_config.json says add_bos_token = false; eos behind only with add_eos_token = true.
///
/// Control pieces of the model ("<s>") and the added tokens of tokenizer_config.json are found in a
/// text, and what lies between is encoded part by part. Each part gets the leading space that the
/// model adds to a text (the rule of Llama's first tokenizer) unless tokenizer_config.json says
/// legacy = false; then only the first part does.
class sentencepiece_tokenizer final : public tokenizer {
public:
  /// Errors as tokenizer::open.
  static result<std::unique_ptr<tokenizer>> read(const std::filesystem::path& file,
                                                 const tokenizer_config& config);

  ~sentencepiece_tokenizer() override;

private:
  using processor = std::unique_ptr<sentencepiece::SentencePieceProcessor>;

  sentencepiece_tokenizer(identity who, processor model, added_token_matcher added, bool legacy);

  result<void> encode_text(std::string_view text, std::vector<token_id>& out) const override;

  processor model_;
  added_token_matcher added_;
  bool legacy_;
};

} // namespace troupe::compute
