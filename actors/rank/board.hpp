#pragma once
// A rank's board: what it shows of itself without being asked. The rank's thread writes (all but
// `fenced`), any thread reads; a reader may see one field a moment before another, never a torn
// one.

#include "actors/messages/membership.hpp"
#include "actors/rank/rank_phases.hpp"

#include <atomic>

namespace troupe::actors {

struct rank_board {
  using counter = std::atomic<std::uint64_t>;

  rank_id rank{};
  std::atomic<rank_phase> phase{rank_phase::empty};
  std::atomic<bool> in_collective{false}; ///< Waits for its tensor group.
  /// The last epoch that is over, told by the node's thread: a rank that waits inside of a
  /// collective reads no mail.
  std::atomic<std::uint64_t> fenced{0};
  counter epoch{0};
  counter step{0};
  counter progress{0};
  counter load_done_bytes{0};
  counter load_total_bytes{0};
  counter bytes_held{0};
  counter state_bytes{0};
  counter steps{0};
  counter rows{0};
  counter compute_ns{0};
  counter collective_ns{0};
  counter wait_ns{0};
  counter send_ns{0};
  counter collectives{0};
  counter collective_bytes{0};
  counter frames_sent{0};
  counter payload_bytes_sent{0};
  counter header_bytes_sent{0};
  counter frames_received{0};
  counter tensor_copies{0};
  counter stale_frames{0};
  counter refused_frames{0};
  counter boundary_frames{0};
  counter boundary_bytes{0};
  counter rows_replayed{0};
  counter rows_resent{0};
  counter state_bytes_sent{0};

  /// Only the rank's thread adds, so a load and a store are enough.
  static void add(counter& to, std::uint64_t amount) {
    to.store(to.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  static void set(counter& to, std::uint64_t value) { to.store(value, std::memory_order_relaxed); }

  rank_gauge read() const;
};

} // namespace troupe::actors
