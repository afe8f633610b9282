#pragma once
// A model folder whose answers are written down: after token x comes token y. Its layers add
// nothing to the embedding, and the head's row of y is the embedding of x, so that a real model
// with real files, shards and state says what a test needs it to say.

#include "config/ids.hpp"
#include "tests/support/temporary_folder.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace troupe::tests {

struct script {
  /// Pairs of a token and the one that follows it. Two rows of the head are equal where one token
  /// is followed by two.
  std::vector<std::pair<token_id, token_id>> follows;
  std::vector<token_id> loud; ///< Their embedding is 1e6 times as large as that of others.
  std::vector<token_id> end_tokens{1};
  std::size_t vocabulary = 2048;
  std::size_t layers = 4;
  std::filesystem::path tokenizer; ///< A folder; empty: the demo's.
};

class scripted_model {
public:
  explicit scripted_model(const script& wanted);

  const std::filesystem::path& folder() const { return folder_.path(); }

private:
  temporary_folder folder_;
};

/// The chain of tokens as pairs, in front of others.
std::vector<std::pair<token_id, token_id>>
chain(const std::vector<token_id>& tokens, std::vector<std::pair<token_id, token_id>> others = {});

/// The demo's tokenizer with its last entries replaced by parts of characters: id 2047 is F0 9F,
/// 2046 is 98 80, 2045 is F0 9F 98. Written into `folder`.
void write_tokenizer_of_parts(const std::filesystem::path& folder);

/// The demo's tokenizer with one more token, "<|extra|>", of that id. Written into `folder`.
void write_tokenizer_with_extra(const std::filesystem::path& folder, token_id id);

/// The demo's tokenizer with merges as "a b" instead of pairs. Written into `folder`.
void write_tokenizer_of_strings(const std::filesystem::path& folder);

} // namespace troupe::tests
