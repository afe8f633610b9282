#pragma once
// The client's side of answers: what it hears from the cluster, and the answers of one round of
// requests, filled event by event. One thread.

#include "actors/control/client.hpp"
#include "actors/messages/clients.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

/// A request got its id. `ask` is the client's own number for a question.
struct request_accepted {
  std::uint64_t ask = 0;
  request_id request{};
};

/// A question got an error for an answer.
struct request_refused {
  std::uint64_t ask = 0;
  error why;
};

/// An order was taken.
struct order_taken {
  std::uint64_t ask = 0;
};

struct status_heard {
  std::uint64_t ask = 0;
  cluster_status status;
};

struct fault_accepted {
  std::uint64_t ask = 0;
  std::string what;
};

struct trace_heard {
  std::uint64_t ask = 0;
  trace_report report;
};

/// The head is gone.
struct head_down {};

using client_event = std::variant<request_accepted,
                                  request_refused,
                                  order_taken,
                                  status_heard,
                                  fault_accepted,
                                  trace_heard,
                                  text_piece,
                                  request_end,
                                  head_down>;

class answer_gathering {
public:
  /// For `count` requests with the asks first_ask, first_ask + 1, ... on_text may be empty.
  answer_gathering(std::size_t count,
                   std::uint64_t first_ask,
                   const cluster_client::text_handler& on_text)
    : answers_(count), first_ask_(first_ask), on_text_(on_text), open_(count) {}

  /// Takes what belongs to these requests; other events do nothing.
  void hear(client_event& what);

  /// Answers that have not ended.
  std::size_t open() const noexcept { return open_; }

  /// Requests that were accepted and have not ended.
  std::vector<request_id> running() const;

  /// A request that runs, and how far its answer is known here.
  struct open_stream {
    std::uint64_t ask = 0;
    request_id request{};
    std::uint32_t tokens = 0;
  };

  std::vector<open_stream> streams() const;

  /// What was asked for and never accepted ends with this.
  void end_unaccepted(const error& why);

  /// Whatever is open ends with this.
  void end_all(const error& why, const std::string& finish);

  std::vector<text_answer> take() { return std::move(answers_); }

private:
  std::optional<std::size_t> index_of(request_id request, client_event& what);
  void accept(const request_accepted& yes);
  void add(std::size_t index, const text_piece& piece);
  void finish(std::size_t index, const request_end& end);
  void end(std::size_t index, const error& why, const std::string& finish);

  std::vector<text_answer> answers_;
  std::uint64_t first_ask_;
  const cluster_client::text_handler& on_text_;
  std::size_t open_;
  std::map<request_id, std::size_t> index_of_;            ///< Of requests that run.
  std::map<request_id, std::vector<client_event>> early_; ///< Came before their request's id.
};

} // namespace troupe::actors
