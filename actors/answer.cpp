#include "actors/answer.hpp"

namespace troupe::actors {

namespace {

std::uint64_t microseconds(answer::clock::duration span) {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::microseconds>(span).count());
}

} // namespace

text_piece answer::take(const committed_token& given) {
  if (tokens_ == 0)
    first_token_ = clock::now();
  resumes_ = 0;
  text_piece piece;
  piece.request = id_;
  piece.first = tokens_++;
  piece.tokens.push_back(given.token);
  if (with_logprobs_)
    piece.logprobs.push_back(given.logprob);
  if (with_top_)
    piece.top.push_back(given.top);
  if (with_digests_)
    piece.digests.push_back(given.digest);
  piece.text = stops_.push(stream_.push(given.token)).text;
  if (keeps_pieces_)
    pieces_.push_back(piece);
  return piece;
}

text_piece answer::rest() {
  text_piece piece;
  piece.request = id_;
  piece.first = tokens_;
  piece.text = stops_.push(stream_.flush()).text;
  piece.text += stops_.flush();
  return piece;
}

request_end answer::end(finish_reason reason, errc code, std::string what) const {
  const auto now = clock::now();
  request_end told;
  told.request = id_;
  told.reason = reason;
  told.code = static_cast<std::uint8_t>(code);
  told.what = std::move(what);
  told.prompt_tokens = static_cast<std::uint32_t>(prompt_tokens_);
  told.answer_tokens = tokens_;
  told.first_token_us = tokens_ > 0 ? microseconds(first_token_ - submitted_) : 0;
  told.total_us = microseconds(now - submitted_);
  return told;
}

} // namespace troupe::actors
