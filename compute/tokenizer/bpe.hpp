#pragma once
// Byte-pair encoding of one word: the "BPE" model of a tokenizer.json.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::compute {

/// What the file says; checked by bpe::make.
struct bpe_settings {
  std::unordered_map<std::string, token_id> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges; ///< Most wanted first.
  std::string continuing_subword_prefix, end_of_word_suffix;
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

/// Starts from characters and joins, again and again, the neighbours whose merge comes first in the
/// list (Sennrich, Haddow, Birch, ACL 2016; details as Hugging Face's tokenizers 0.2x). A word of n
/// characters takes O(n log n). Words up to 64 bytes are remembered, at most 16,384 of them.
/// Any number of threads may encode at once.
class bpe {
public:
  /// invalid_model: a merge of unknown pieces, an unknown unk_token, or pieces of several
  /// characters without any merge that could make them.
  static result<bpe> make(bpe_settings settings);

  /// Appends the tokens of one word of valid UTF-8. A character that the vocabulary spells in no
  /// way is dropped, as HF drops it, if there is no unk_token.
  void encode(std::string_view word, std::vector<token_id>& out) const;

private:
  struct merge {
    std::uint64_t pair = empty; ///< left << 32 | right
    std::uint32_t rank = 0;
    token_id made = 0;
  };

  struct symbol {
    token_id id;
    std::int32_t previous, next; ///< -1: none
    bool alive = true;
  };

  struct cache;

  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  result<void> fill_merges();
  result<void> check_coverage() const;
  const merge* find_merge(token_id left, token_id right) const noexcept;
  std::optional<token_id> id_of(const std::string& piece) const;
  std::vector<symbol> characters_of(std::string_view word) const;
  bool add_bytes(std::string_view character, std::vector<symbol>& symbols) const;
  void join(std::vector<symbol>& symbols) const;

  bpe_settings settings_;
  std::vector<merge> table_; ///< Open addressing; the size is a power of two.
  std::optional<token_id> unk_;
  std::vector<std::optional<token_id>> byte_ids_; ///< Of "<0x00>" ... "<0xFF>".
  std::shared_ptr<cache> cache_;
};

} // namespace troupe::compute
