#pragma once
// The bytes of all tokens of a vocabulary as a tree: tokens with a common start are looked at once.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::compute {

class tokenizer;

/// Tokens that show text; special ones, holes and empty ones are not in it. Immutable.
class token_trie {
public:
  /// In the order of a walk, so that skipping what lies below a node is one assignment.
  struct node {
    std::uint8_t byte = 0;                     ///< That leads here from the node above.
    std::uint32_t after = 0;                   ///< The first node that is not below this one.
    std::uint32_t first_token = 0, tokens = 0; ///< That end here.
  };

  /// unsupported: a tokenizer whose tokens are joined with separators.
  static result<std::shared_ptr<const token_trie>> of(const tokenizer& words);

  /// `texts` by id; empty ones are left out.
  explicit token_trie(const std::vector<std::string>& texts);

  /// The nodes below the root.
  const std::vector<node>& nodes() const noexcept { return nodes_; }

  /// Of a node: token_id of each of its tokens.
  const token_id* tokens_of(const node& at) const noexcept {
    return tokens_.data() + at.first_token;
  }

  /// The bytes of a token; empty if it is not in the tree.
  std::string_view text(token_id token) const noexcept {
    return token < texts_.size() ? std::string_view(texts_[token]) : std::string_view();
  }

  /// Largest id + 1.
  std::size_t vocabulary() const noexcept { return texts_.size(); }

private:
  std::vector<std::string> texts_;
  std::vector<node> nodes_;
  std::vector<token_id> tokens_;
};

} // namespace troupe::compute
