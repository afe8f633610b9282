#pragma once
// Embedding and head with the rows of the vocabulary dealt out. A lookup finds each token on one
// rank and zeros on the others, so a sum gives every rank the whole row; the head's logits are
// gathered, with parts that may differ in size. Contract rules 18, 20, 32, 63.

#include "compute/buffer.hpp"
#include "compute/collective.hpp"
#include "compute/device.hpp"
#include "config/ids.hpp"
#include "config/result.hpp"

#include <cstddef>
#include <memory>
#include <span>

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

  /// x: [rows, hidden]; logits: [rows, vocabulary] without gaps, complete on every rank.
  result<void> forward(tensor x, tensor logits, collective& group);

private:
  result<void> gather(tensor local, tensor logits, collective& group);

  device* where_;
  std::shared_ptr<const matrix> rows_;
  std::size_t vocabulary_;
  buffer local_;    // this rank's logits; grows
  buffer gathered_; // all parts, one member after the other; grows
};

} // namespace troupe::compute
