#include "actors/conductor/answer.hpp"

#include <utility>

namespace troupe::actors {

namespace {

std::uint64_t microseconds(answer::clock::duration span) {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::microseconds>(span).count());
}

} // namespace

text_piece answer::take(const committed_token& given) {
  const auto now = clock::now();
  if (tokens_ == 0)
    first_token_ = now;
  resumes_ = 0;
  last_wait_us_ = microseconds(now - std::exchange(last_token_, now));
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

std::optional<std::uint64_t> answer::start() {
  if (queued_us_)
    return std::nullopt;
  queued_us_ = microseconds(clock::now() - submitted_);
  return queued_us_;
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
  told.queued_us = queued_us_.value_or(0);
  told.first_token_us = tokens_ > 0 ? microseconds(first_token_ - submitted_) : 0;
  told.total_us = microseconds(now - submitted_);
  return told;
}

} // namespace troupe::actors
