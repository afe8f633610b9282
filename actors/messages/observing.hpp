#pragma once
// What a cluster tells of itself to whoever watches it: distributions, what happened last, and the
// steps of all ranks on one clock (`troupe trace`).

#include "actors/caf.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// A histogram as it is told; the bounds are those of its kind (actors/histogram.hpp).
struct tally {
  std::vector<std::uint64_t> counts; ///< By bucket; the last is what lies above every bound.
  std::uint64_t sum = 0;             ///< Of all values, in their own unit.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, tally& x) {
  return f(caf::meta::type_name("tally"), x.counts, x.sum);
}

/// Something that happened to the cluster, for people.
struct cluster_event {
  std::uint64_t at_ms = 0; ///< Since 1970, by the head's clock.
  std::string what;        ///< "node 'b' at 10.0.0.2 is gone: ..."
  std::string done;        ///< What was done about it; empty: nothing yet.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_event& x) {
  return f(caf::meta::type_name("cluster_event"), x.at_ms, x.what, x.done);
}

/// client -> gateway -> director -> nodes -> ranks: note the next steps. Answered to the client by
/// trace_report, at the latest after `patience_ms`; error: not_now (the cluster does not serve, or
/// somebody else's trace is under way).
struct trace_order {
  std::uint64_t serial = 0; ///< Given by the director.
  std::uint32_t steps = 0;
  std::uint32_t patience_ms = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, trace_order& x) {
  return f(caf::meta::type_name("trace_order"), x.serial, x.steps, x.patience_ms);
}

/// What a rank, or the conductor, did in a span of time.
enum class trace_kind : std::uint8_t {
  step,       ///< A whole pass. Of the conductor: from the plan's leaving to its commit.
  layer,      ///< `detail`: which.
  collective, ///< Waiting included. `detail`: elements.
  finish,     ///< Norm, head and what follows on the way out.
  send,       ///< Handing rows or choices to the wire. `detail`: bytes of rows.
};

struct trace_span {
  trace_kind kind = trace_kind::step;
  std::uint64_t begin_ns = 0; ///< By the clock of its node; in a report by the head's.
  std::uint64_t end_ns = 0;
  std::uint64_t detail = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, trace_span& x) {
  return f(caf::meta::type_name("trace_span"), x.kind, x.begin_ns, x.end_ns, x.detail);
}

/// One step of one rank: the whole first, then what lies within it.
struct traced_step {
  epoch_id epoch{};
  step_id step{};
  std::uint32_t micro_batch = 0;
  std::uint32_t rows = 0;
  std::uint8_t replay = 0; ///< 1: it rebuilt state that was lost.
  std::vector<request_id> requests;
  std::vector<trace_span> spans;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, traced_step& x) {
  return f(caf::meta::type_name("traced_step"),
           x.epoch,
           x.step,
           x.micro_batch,
           x.rows,
           x.replay,
           x.requests,
           x.spans);
}

/// rank -> node -> director, conductor -> director: its share of a trace.
struct trace_part {
  std::uint64_t serial = 0; ///< Of the order.
  rank_id rank{};           ///< Or conductor_rank.
  std::uint32_t stage = 0;
  std::string node;
  std::uint64_t uncertain_ns = 0; ///< The clocks may differ by so much from what was reckoned.
  std::vector<traced_step> steps;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, trace_part& x) {
  return f(
    caf::meta::type_name("trace_part"), x.serial, x.rank, x.stage, x.node, x.uncertain_ns, x.steps);
}

/// director -> client: all parts that came in time.
struct trace_report {
  std::string cluster;
  std::vector<trace_part> parts;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, trace_report& x) {
  return f(caf::meta::type_name("trace_report"), x.cluster, x.parts);
}

} // namespace troupe::actors
