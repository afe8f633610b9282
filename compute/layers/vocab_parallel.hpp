#pragma once
// Embedding and head with the rows of the vocabulary dealt out. A lookup finds each token on one
// rank and zeros on the others, so a sum gives every rank the whole row. Of the head's logits the
// group exchanges the candidates, or gathers whole rows where these are looked at, with parts that
// may differ in size. Contract rules 18, 20, 32, 63.

#include "compute/buffer.hpp"
#include "compute/candidates.hpp"
#include "compute/collective.hpp"
#include "compute/device.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace troupe::compute {

class vocab_embedding {
public:
  /// `rows` holds the embeddings of the tokens from `first` on; a tied head may share it.
  vocab_embedding(device& where, std::shared_ptr<const matrix> rows, token_id first);

  /// out: [tokens, hidden] without gaps, the same on every rank. At most one all-reduce.
  result<void> forward(std::span<const token_id> tokens, tensor out, collective& group) const;

private:
  device* where_;
  std::shared_ptr<const matrix> rows_;
  token_id first_;
};

class vocab_head {
public:
  /// `rows` holds this rank's part of a head with `vocabulary` rows, cut by the one split rule.
  vocab_head(device& where, std::shared_ptr<const matrix> rows, std::size_t vocabulary);

  /// x: [rows, hidden]. `wanted` has for each row the number of candidates that are enough, or 0
  /// for whole logits; a group of one has no others. `found` gets the candidates of each row, and
  /// logits, [rows with 0, vocabulary] without gaps, the whole ones: the same on every rank. Where
  /// a rank has a logit of a row that is no finite number, its candidates have NaN. Two all-gathers
  /// at most, one of each kind.
  result<void> forward(tensor x,
                       std::span<const std::uint32_t> wanted,
                       tensor logits,
                       std::span<token_candidates> found,
                       collective& group);

private:
  std::vector<float> pick(tensor local, std::span<const std::uint32_t> wanted, token_id first);
  result<void> exchange(tensor local,
                        std::span<const std::uint32_t> wanted,
                        std::span<token_candidates> found,
                        collective& group);
  result<void> gather(tensor local, tensor logits, collective& group);

  device* where_;
  std::shared_ptr<const matrix> rows_;
  std::size_t vocabulary_;
  buffer local_;    // this rank's logits; grows
  buffer gathered_; // all parts, one member after the other; grows
};

} // namespace troupe::compute
