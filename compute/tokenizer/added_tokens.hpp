#pragma once
// Tokens that are found in a text before the model sees it: "<|im_end|>" and the like.

#include "config/ids.hpp"

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::compute {

/// One entry of "added_tokens".
struct added_token {
  token_id id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;  ///< Looked for in the normalised text, else in the text as given.
  bool lstrip = false;      ///< Takes the white space on its left with it.
  bool rstrip = false;      ///< ... on its right.
  bool single_word = false; ///< Not where a word character touches it.
};

/// A part of a text: a token, or what lies between.
struct added_part {
  std::string_view text;
  std::optional<token_id> token;
};

/// Finds added tokens: leftmost first, of those the longest, as HF's Aho-Corasick automaton does.
class added_token_matcher {
public:
  void add(const added_token& token);

  /// Valid UTF-8 to parts in order; those between tokens are not empty.
  std::vector<added_part> cut(std::string_view text) const;

private:
  struct match {
    std::size_t bytes = 0;
    const added_token* token = nullptr;
  };

  match longest_at(std::string_view text) const;

  std::vector<added_token> tokens_;
  std::unordered_map<std::uint64_t, std::uint32_t> edges_; ///< node << 8 | byte -> node; root is 0
  std::unordered_map<std::uint32_t, std::size_t> ends_;    ///< node -> index into tokens_
  std::uint32_t nodes_ = 1;
  std::bitset<256> first_bytes_; ///< Most bytes of a text start no token at all.
};

} // namespace troupe::compute
