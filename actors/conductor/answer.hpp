#pragma once
// One request's answer as it is made: tokens to text, stop strings, and what its client is told.

#include "actors/conductor/schedule.hpp"
#include "actors/messages.hpp"
#include "compute/tokenizer/stop_strings.hpp"
#include "compute/tokenizer/text_stream.hpp"

#include <chrono>
#include <optional>

namespace troupe::actors {

class answer {
public:
  using clock = std::chrono::steady_clock;

  answer(request_id id,
         client_actor client,
         compute::text_stream stream,
         compute::stop_strings stops,
         const generate_request& wish,
         bool keeps_pieces = false)
    : id_(id), client_(std::move(client)), stream_(std::move(stream)), stops_(std::move(stops)),
      prompt_tokens_(wish.tokens.size()), with_digests_(wish.with_digests),
      with_logprobs_(wish.with_logprobs), with_top_(wish.top_logprobs > 0),
      keeps_pieces_(keeps_pieces) {}

  /// Takes a committed token; the piece to send. `stopped()` tells whether a stop string was met.
  text_piece take(const committed_token& given);

  bool stopped() const { return stops_.stopped(); }

  /// What is left of the text, for an answer that no stop string ended; may be empty.
  text_piece rest();

  request_end end(finish_reason reason, errc code, std::string what) const;

  /// Nobody, after a restart of the head, until somebody asks for the stream.
  const client_actor& client() const { return client_; }

  void give_to(client_actor client) { client_ = std::move(client); }

  /// All pieces so far, where they are kept.
  const std::vector<text_piece>& pieces() const { return pieces_; }

  clock::time_point submitted() const { return submitted_; }

  std::uint32_t tokens() const { return tokens_; }

  /// Its first step goes out: how long it has waited, in microseconds; nothing once more (after a
  /// fault).
  std::optional<std::uint64_t> start();

  /// Of the last token that was taken: since the one before, or since the request came.
  std::uint64_t last_wait_us() const { return last_wait_us_; }

  /// Counts the epochs that ended while this request ran, since its last token.
  int resume() { return ++resumes_; }

private:
  request_id id_;
  client_actor client_;
  compute::text_stream stream_;
  compute::stop_strings stops_;
  std::size_t prompt_tokens_;
  bool with_digests_, with_logprobs_, with_top_;
  bool keeps_pieces_;
  std::vector<text_piece> pieces_;
  std::uint32_t tokens_ = 0;
  int resumes_ = 0;
  clock::time_point submitted_ = clock::now();
  clock::time_point first_token_{};
  clock::time_point last_token_ = submitted_;
  std::uint64_t last_wait_us_ = 0;
  std::optional<std::uint64_t> queued_us_;
};

} // namespace troupe::actors
