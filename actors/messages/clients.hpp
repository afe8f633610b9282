#pragma once
// The control road between clients and the cluster: requests, text, status.

#include "actors/messages/membership.hpp"
#include "actors/messages/observing.hpp"
#include "actors/messages/steps.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// client -> gateway: write on. Answered with the request's id, or an error (queue full, too long,
/// not ready) whose text is for the user.
struct generate_request {
  std::string prompt;           ///< UTF-8; used when tokens is empty.
  std::vector<token_id> tokens; ///< The prompt as ids, start token included.
  sampling_choice sampling;
  std::uint32_t max_tokens = 0;
  std::vector<std::string> stop;  ///< Strings that end the text and are not part of it.
  bool ignore_end = false;        ///< Go on after the model's end token.
  bool with_digests = false;      ///< Report a digest of each token's logits.
  bool with_logprobs = false;     ///< Report each token's probability.
  std::uint32_t top_logprobs = 0; ///< And the most probable tokens in its place; 0 ... 20.
  std::vector<token_bias> bias;   ///< -100 ... 100 each; a token once.
  std::string schema;             ///< JSON schema that the answer follows (docs/json-schema.md).
  std::string label;              ///< What the client calls it, for logs; may be empty.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, generate_request& x) {
  return f(caf::meta::type_name("generate_request"),
           x.prompt,
           x.tokens,
           x.sampling,
           x.max_tokens,
           x.stop,
           x.ignore_end,
           x.with_digests,
           x.with_logprobs,
           x.top_logprobs,
           x.bias,
           x.schema,
           x.label);
}

/// conductor -> client: the next piece of text, with the tokens behind it. Pieces joined are the
/// whole text; a piece may be empty (an incomplete character) while its tokens are not.
struct text_piece {
  request_id request{};
  std::uint32_t first = 0; ///< Index of the first of these tokens in the answer.
  std::string text;
  std::vector<token_id> tokens;
  std::vector<real32> logprobs;             ///< Of the tokens, where asked for.
  std::vector<std::vector<token_odds>> top; ///< For each token, where asked for.
  std::vector<std::uint64_t> digests;       ///< Of the logits, where asked for.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, text_piece& x) {
  return f(caf::meta::type_name("text_piece"),
           x.request,
           x.first,
           x.text,
           x.tokens,
           x.logprobs,
           x.top,
           x.digests);
}

enum class finish_reason : std::uint8_t {
  end,       ///< The model's end token or a stop string.
  length,    ///< max_tokens or the context.
  cancelled, ///< The client withdrew it or went away.
  failed,    ///< `code` and `what` say why.
};

/// conductor -> client: the last message of a request.
struct request_end {
  request_id request{};
  finish_reason reason = finish_reason::end;
  std::uint8_t code = 0; ///< troupe::errc when failed.
  std::string what;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t answer_tokens = 0;
  std::uint64_t queued_us = 0;
  std::uint64_t first_token_us = 0; ///< From admission.
  std::uint64_t total_us = 0;       ///< From admission.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, request_end& x) {
  return f(caf::meta::type_name("request_end"),
           x.request,
           x.reason,
           x.code,
           x.what,
           x.prompt_tokens,
           x.answer_tokens,
           x.queued_us,
           x.first_token_us,
           x.total_us);
}

/// client -> gateway: a stream that broke with its head goes on here. Answered like a
/// generate_request: the pieces from token `offset` on follow, then the end. Error: not_found (no
/// such request, or no journal).
struct stream_attach {
  request_id request{};
  std::uint32_t offset = 0; ///< Tokens that the client has.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stream_attach& x) {
  return f(caf::meta::type_name("stream_attach"), x.request, x.offset);
}

/// client -> gateway: stop; a request that is not known (any more) is fine.
struct request_cancel {
  request_id request{};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, request_cancel& x) {
  return f(caf::meta::type_name("request_cancel"), x.request);
}

struct status_query {
  std::uint16_t version = protocol_version;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, status_query& x) {
  return f(caf::meta::type_name("status_query"), x.version);
}

/// One rank of a cluster_status, with what the director knows about it.
struct rank_status {
  rank_gauge gauge;
  std::string node;
  std::uint32_t stage = 0;
  std::uint32_t tensor = 0;
  std::uint64_t first_unit = 0;
  std::uint64_t last_unit = 0;
  std::string links;
  std::uint64_t bytes_read = 0;
  std::uint64_t silent_ms = 0; ///< Since the last beat of its node.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_status& x) {
  return f(caf::meta::type_name("rank_status"),
           x.gauge,
           x.node,
           x.stage,
           x.tensor,
           x.first_unit,
           x.last_unit,
           x.links,
           x.bytes_read,
           x.silent_ms);
}

struct node_status {
  std::string name;
  std::string address;
  std::string state; ///< "missing", "joined", "spare", "draining", "drained", "lost".
  std::string reason;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_status& x) {
  return f(caf::meta::type_name("node_status"), x.name, x.address, x.state, x.reason);
}

/// What the conductor shows of itself.
struct conductor_gauge {
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t answer_tokens = 0;
  std::uint64_t steps = 0;
  std::uint64_t steps_in_flight = 0;
  std::uint64_t pages_total = 0;
  std::uint64_t pages_used = 0;
  std::uint64_t refused = 0; ///< Requests that were not taken.
  tally queued_us, first_token_us, between_tokens_us, whole_us;
  tally step_rows, step_requests; ///< Of each ordinary step: a micro-batch.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, conductor_gauge& x) {
  return f(caf::meta::type_name("conductor_gauge"),
           x.queued,
           x.running,
           x.finished,
           x.failed,
           x.cancelled,
           x.prompt_tokens,
           x.answer_tokens,
           x.steps,
           x.steps_in_flight,
           x.pages_total,
           x.pages_used,
           x.refused,
           x.queued_us,
           x.first_token_us,
           x.between_tokens_us,
           x.whole_us,
           x.step_rows,
           x.step_requests);
}

/// director -> client.
struct cluster_status {
  std::string cluster;
  std::string phase;  ///< director_phase, for example "serving".
  std::string reason; ///< Why it is not serving.
  epoch_id epoch{};
  std::uint64_t uptime_ms = 0;
  std::vector<node_status> nodes;
  std::vector<rank_status> ranks;
  conductor_gauge conductor;
  std::uint64_t epochs_lost = 0;     ///< That ended by a fault.
  std::uint64_t recoveries = 0;      ///< Times that it served again afterwards.
  std::vector<cluster_event> events; ///< The last ones, oldest first.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_status& x) {
  return f(caf::meta::type_name("cluster_status"),
           x.cluster,
           x.phase,
           x.reason,
           x.epoch,
           x.uptime_ms,
           x.nodes,
           x.ranks,
           x.conductor,
           x.epochs_lost,
           x.recoveries,
           x.events);
}

/// client -> gateway: the cluster goes on without this node, which then ends. Answered when the
/// node may go, by its ending; refused where too few stages would be left.
struct node_drain {
  std::string node;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_drain& x) {
  return f(caf::meta::type_name("node_drain"), x.node);
}

/// client -> gateway: end the cluster in good order.
struct cluster_stop {
  std::string reason;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_stop& x) {
  return f(caf::meta::type_name("cluster_stop"), x.reason);
}

} // namespace troupe::actors
