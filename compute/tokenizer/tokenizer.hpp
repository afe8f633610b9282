#pragma once
// Text to tokens and back, as the tokenizer files of a model say.

#include "compute/tokenizer/joining.hpp"
#include "compute/tokenizer/vocabulary.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

/// The tokenizer of one model. Immutable: any number of threads may use it at once.
///
/// The reference is Hugging Face's tokenizers for tokenizer.json, and sentencepiece for
/// tokenizer.model. Where Troupe differs on purpose:
/// - byte_fallback tokens that are not UTF-8 become one U+FFFD each without spoiling the whole
///   characters around them (as sentencepiece; HF replaces the whole run), so that text can be sent
///   while it is made;
/// - clean_up_tokenization_spaces of tokenizer_config.json is not applied: it edits the text;
/// - truncation and padding of tokenizer.json are left to the request.
class tokenizer {
public:
  /// Reads tokenizer.json, else tokenizer.model, of a model's folder, with tokenizer_config.json
  /// and special_tokens_map.json if they are there. not_found: neither file. invalid_model: a
  /// damaged file. unsupported: a setting or model type that Troupe does not know. The message
  /// names the file, the key, what was found and what is supported.
  static result<std::unique_ptr<tokenizer>> open(const std::filesystem::path& model_folder);

  virtual ~tokenizer() = default;

  /// `add_special` puts the tokens around the text that the files ask for (bos, eos). Added tokens
  /// in the text, special ones too, become their ids. invalid_argument: the text is not UTF-8; the
  /// message names the byte.
  result<std::vector<token_id>> encode(std::string_view utf8, bool add_special) const;

  /// Always valid UTF-8: bytes that are not become U+FFFD. The same text as text_stream gives.
  /// Holes in the vocabulary are empty. invalid_argument: an id of vocabulary_size() or more.
  result<std::string> decode(std::span<const token_id> ids, bool skip_special) const;

  /// Largest id + 1, added tokens included: what the rows of the model's head have to cover.
  std::size_t vocabulary_size() const noexcept { return vocabulary_.size(); }

  std::optional<token_id> bos() const noexcept { return bos_; }

  std::optional<token_id> eos() const noexcept { return eos_; }

  /// By the piece as the file spells it, for example "\u0120the".
  std::optional<token_id> id_of(std::string_view piece) const { return vocabulary_.find(piece); }

  /// Empty if there is no such token.
  std::string piece(token_id id) const { return std::string(vocabulary_.piece(id)); }

  bool is_special(token_id id) const noexcept { return vocabulary_.is_special(id); }

  /// XXH3-128 of all that decides ids and text: vocabulary, merges, added tokens, settings. Equal
  /// on two ranks: they mean the same by an id.
  std::array<std::byte, 16> digest() const noexcept { return digest_; }

  const vocabulary& entries() const noexcept { return vocabulary_; }

  const joining_rules& joining() const noexcept { return joining_; }

protected:
  /// What every kind of tokenizer has; filled by its reader.
  struct identity {
    vocabulary entries;
    joining_rules joining;
    std::optional<token_id> bos, eos;
    std::vector<token_id> before, after; ///< Around a text with add_special.
    std::array<std::byte, 16> digest{};
  };

  explicit tokenizer(identity who);

private:
  /// Appends the tokens of valid UTF-8.
  virtual result<void> encode_text(std::string_view text, std::vector<token_id>& out) const = 0;

  vocabulary vocabulary_;
  joining_rules joining_;
  std::optional<token_id> bos_, eos_;
  std::vector<token_id> before_, after_;
  std::array<std::byte, 16> digest_;
};

} // namespace troupe::compute
