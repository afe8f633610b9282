#pragma once
// The control road between nodes and the director: who is there, who holds what, which plan runs.

#include "actors/caf.hpp"
#include "config/ids.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// Whoever changes a message of the data or the control road bumps this.
inline constexpr std::uint16_t protocol_version = 4;

using byte_string = std::vector<std::uint8_t>;

/// A digest of something that all ranks must agree on, by name: "tensor model.norm.weight".
struct named_digest {
  std::string name;
  std::string digest; ///< Hexadecimal.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, named_digest& x) {
  return f(caf::meta::type_name("named_digest"), x.name, x.digest);
}

struct node_welcome {
  std::uint64_t incarnation = 0; ///< Of the director.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_welcome& x) {
  return f(caf::meta::type_name("node_welcome"), x.incarnation);
}

/// director -> node: what one of its ranks is.
struct shard_assignment {
  std::uint32_t index = 0; ///< Of the rank on its node; stays, while `rank` is its place in a plan.
  std::uint64_t serial = 0; ///< Counts assignments; rank_loaded repeats it.
  rank_id rank{};
  std::uint32_t stage = 0;
  std::uint32_t tensor = 0;
  std::uint32_t pipeline_size = 1;
  std::uint32_t tensor_size = 1;
  std::uint64_t first_unit = 0;
  std::uint64_t last_unit = 0; ///< One past the last.
  std::uint64_t pages = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, shard_assignment& x) {
  return f(caf::meta::type_name("shard_assignment"),
           x.index,
           x.serial,
           x.rank,
           x.stage,
           x.tensor,
           x.pipeline_size,
           x.tensor_size,
           x.first_unit,
           x.last_unit,
           x.pages);
}

/// director -> node: the ranks that it hosts.
struct node_assignment {
  std::vector<shard_assignment> ranks;
  std::uint64_t run = 0; ///< Random; the same until the cluster's head ends.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_assignment& x) {
  return f(caf::meta::type_name("node_assignment"), x.ranks, x.run);
}

/// rank -> node -> director: the shard is loaded; how to reach the rank.
struct rank_loaded {
  std::uint32_t index = 0;  ///< shard_assignment::index
  std::uint64_t serial = 0; ///< shard_assignment::serial
  rank_id rank{};
  byte_string address;    ///< transport::peer_address.
  std::string host;       ///< transport::memory_domain().
  byte_string segment;    ///< Shared segment for its tensor group; tensor rank 0 makes it.
  std::uint64_t life = 0; ///< Random per load: another life has none of the former one's state.
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_held = 0;
  std::uint64_t load_us = 0;
  std::vector<named_digest> digests; ///< Of the owned parts, named with their rows and columns.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_loaded& x) {
  return f(caf::meta::type_name("rank_loaded"),
           x.index,
           x.serial,
           x.rank,
           x.address,
           x.host,
           x.segment,
           x.life,
           x.bytes_read,
           x.bytes_held,
           x.load_us,
           x.digests);
}

/// A shard that a node has loaded.
struct held_shard {
  shard_assignment what;
  rank_loaded report;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, held_shard& x) {
  return f(caf::meta::type_name("held_shard"), x.what, x.report);
}

/// node -> director: who I am and what I hold. Answered by node_welcome or an error.
struct node_hello {
  std::uint16_t version = protocol_version;
  std::string cluster;
  std::string name;
  std::uint64_t incarnation = 0; ///< Random per process; a restart is another one.
  std::string host;              ///< transport::host_identity().
  std::string address;           ///< For people: "127.0.0.1, process 4711".
  std::uint64_t memory_bytes = 0;
  std::string settings;              ///< Digest of what all nodes must agree on in the config.
  std::string model;                 ///< compute::model::description_digest().
  std::string tokenizer;             ///< Digest of the tokenizer.
  std::vector<named_digest> samples; ///< compute::model::fingerprints() of the files that are here.
  std::vector<held_shard> held;      ///< Loaded for a former head, and still there.
  epoch_id last_epoch{};             ///< That this node has taken part in.
  std::string guest; ///< The [[node]] of a node that is not in the cluster file; else empty.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_hello& x) {
  return f(caf::meta::type_name("node_hello"),
           x.version,
           x.cluster,
           x.name,
           x.incarnation,
           x.host,
           x.address,
           x.memory_bytes,
           x.settings,
           x.model,
           x.tokenizer,
           x.samples,
           x.held,
           x.last_epoch,
           x.guest);
}

/// Somebody who wants to become a node -> gateway -> director: what has the cluster agreed on?
struct terms_query {
  std::uint16_t version = protocol_version;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, terms_query& x) {
  return f(caf::meta::type_name("terms_query"), x.version);
}

/// Texts of cluster files, without a model path.
struct cluster_terms {
  std::string agreed;  ///< Of the file; all nodes have its digest.
  std::string present; ///< With those that joined since.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cluster_terms& x) {
  return f(caf::meta::type_name("cluster_terms"), x.agreed, x.present);
}

/// rank -> node -> director, conductor -> director: after an epoch, how to reach it in the next.
struct rank_rewired {
  rank_id rank{};
  std::uint32_t index = 0; ///< shard_assignment::index
  byte_string address;     ///< transport::peer_address.
  byte_string segment;     ///< Shared segment for its tensor group; tensor rank 0 makes it.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_rewired& x) {
  return f(caf::meta::type_name("rank_rewired"), x.rank, x.index, x.address, x.segment);
}

/// Where one rank of an epoch is.
struct rank_address {
  rank_id rank{};
  std::uint32_t node = 0;
  std::uint32_t index = 0; ///< On its node.
  byte_string address;
  std::string host;
  byte_string segment;
  std::uint64_t life = 0; ///< rank_loaded::life
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_address& x) {
  return f(caf::meta::type_name("rank_address"),
           x.rank,
           x.node,
           x.index,
           x.address,
           x.host,
           x.segment,
           x.life);
}

/// Layers whose attention state goes from the rank that held them under the last plan to the one
/// that holds them now.
struct state_move {
  rank_id from{};
  rank_id to{};
  std::uint64_t first_unit = 0;
  std::uint64_t last_unit = 0; ///< One past the last.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, state_move& x) {
  return f(caf::meta::type_name("state_move"), x.from, x.to, x.first_unit, x.last_unit);
}

/// director -> nodes -> ranks, and from the head's node to the conductor: one plan over one set of
/// ranks begins.
struct epoch_plan {
  epoch_id epoch{};
  byte_string token; ///< 16 bytes; the first frame of each endpoint proves it.
  std::uint32_t pipeline_size = 1;
  std::uint32_t tensor_size = 1;
  std::vector<rank_address> ranks; ///< All ranks, ascending.
  byte_string conductor;           ///< Its transport's address.
  std::uint64_t pages = 0;         ///< Pages of attention state on every rank.
  /// 1 where ranks hold other layers than in the last epoch that served: they move what they held,
  /// and tell the conductor what they hold then.
  std::uint8_t restaged = 0;
  std::vector<state_move> moves;
  std::vector<rank_address> leavers; ///< Ranks of the last plan alone, numbered on; for `moves`.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, epoch_plan& x) {
  return f(caf::meta::type_name("epoch_plan"),
           x.epoch,
           x.token,
           x.pipeline_size,
           x.tensor_size,
           x.ranks,
           x.conductor,
           x.pages,
           x.restaged,
           x.moves,
           x.leavers);
}

/// rank -> node -> director: every neighbour of the epoch proved the token to me and I to them.
struct rank_joined {
  rank_id rank{};
  epoch_id epoch{};
  std::string links; ///< For people: which transports carry which neighbour.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_joined& x) {
  return f(caf::meta::type_name("rank_joined"), x.rank, x.epoch, x.links);
}

/// rank -> node -> director, conductor -> director: the epoch cannot go on.
struct rank_fault {
  rank_id rank{};
  epoch_id epoch{};
  step_id step{};
  std::string phase;
  std::uint8_t code = 0; ///< troupe::errc.
  std::string what;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_fault& x) {
  return f(caf::meta::type_name("rank_fault"), x.rank, x.epoch, x.step, x.phase, x.code, x.what);
}

/// director -> nodes -> ranks, and from the head's node to the conductor: nothing of this epoch
/// counts any more.
struct fence {
  epoch_id epoch{};
  std::string reason;
  std::uint8_t node_missing = 0; ///< 1 where the next epoch waits for a node.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, fence& x) {
  return f(caf::meta::type_name("fence"), x.epoch, x.reason, x.node_missing);
}

/// What a rank shows of itself without being asked (actors/rank/board.hpp).
struct rank_gauge {
  rank_id rank{};
  std::uint8_t phase = 0;         ///< rank_phase.
  std::uint8_t in_collective = 0; ///< 1 while it waits for its tensor group.
  epoch_id epoch{};
  step_id step{};
  std::uint64_t progress = 0; ///< Grows with everything that the rank's thread does.
  std::uint64_t load_done_bytes = 0;
  std::uint64_t load_total_bytes = 0;
  std::uint64_t bytes_held = 0;
  std::uint64_t state_bytes = 0;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t compute_ns = 0; ///< In units, embedding and head, collectives excluded.
  std::uint64_t collective_ns = 0;
  std::uint64_t wait_ns = 0; ///< Between a step's end and the next one's start.
  std::uint64_t send_ns = 0; ///< Handing rows and choices to the wire.
  std::uint64_t collectives = 0;
  std::uint64_t collective_bytes = 0; ///< Of their results on this rank.
  std::uint64_t frames_sent = 0;
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t tensor_copies = 0;
  std::uint64_t stale_frames = 0;
  std::uint64_t boundary_frames = 0;  ///< Partition inputs sent to the next stage.
  std::uint64_t boundary_bytes = 0;   ///< Their payload and header bytes.
  std::uint64_t rows_replayed = 0;    ///< Rows computed again, to rebuild state that was lost.
  std::uint64_t rows_resent = 0;      ///< Rows sent again to a next stage that lost its state.
  std::uint64_t state_bytes_sent = 0; ///< Attention state that went to other ranks with its layers.
  std::uint64_t refused_frames = 0;   ///< Malformed, damaged, repeated, or of nobody we know.
  std::uint64_t faults = 0;           ///< That happened on purpose (config/fault.hpp).
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, rank_gauge& x) {
  return f(caf::meta::type_name("rank_gauge"),
           x.rank,
           x.phase,
           x.in_collective,
           x.epoch,
           x.step,
           x.progress,
           x.load_done_bytes,
           x.load_total_bytes,
           x.bytes_held,
           x.state_bytes,
           x.steps,
           x.rows,
           x.compute_ns,
           x.collective_ns,
           x.wait_ns,
           x.send_ns,
           x.collectives,
           x.collective_bytes,
           x.frames_sent,
           x.payload_bytes_sent,
           x.header_bytes_sent,
           x.frames_received,
           x.tensor_copies,
           x.stale_frames,
           x.boundary_frames,
           x.boundary_bytes,
           x.rows_replayed,
           x.rows_resent,
           x.state_bytes_sent,
           x.refused_frames,
           x.faults);
}

/// node -> director, periodically: the gauges of its ranks.
struct node_beat {
  std::uint64_t incarnation = 0;
  std::uint64_t sent_ns = 0; ///< By the node's steady clock.
  std::vector<rank_gauge> ranks;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_beat& x) {
  return f(caf::meta::type_name("node_beat"), x.incarnation, x.sent_ns, x.ranks);
}

/// director -> node, in answer to a beat: the head is there. Without it a node that was cut off
/// would wait for ever.
struct beat_heard {
  std::uint64_t incarnation = 0; ///< Of the director.
  std::uint64_t sent_ns = 0;     ///< Of the beat: node_beat::sent_ns.
  std::uint64_t heard_ns = 0;    ///< By the head's steady clock.
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, beat_heard& x) {
  return f(caf::meta::type_name("beat_heard"), x.incarnation, x.sent_ns, x.heard_ns);
}

/// director -> nodes: end the process in good order.
struct node_stop {
  std::string reason;
  /// The errc where the cluster failed, so that every process ends with it; otherwise no_failure.
  std::uint8_t failure = no_failure;

  static constexpr std::uint8_t no_failure = 0xff;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_stop& x) {
  return f(caf::meta::type_name("node_stop"), x.reason, x.failure);
}

} // namespace troupe::actors
