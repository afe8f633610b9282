#include "actors/rank/board.hpp"

namespace troupe::actors {

rank_gauge rank_board::read() const {
  const auto get = [](const counter& from) { return from.load(std::memory_order_relaxed); };
  rank_gauge gauge;
  gauge.rank = rank;
  gauge.phase = static_cast<std::uint8_t>(phase.load(std::memory_order_relaxed));
  gauge.in_collective = in_collective.load(std::memory_order_relaxed) ? 1 : 0;
  gauge.epoch = static_cast<epoch_id>(get(epoch));
  gauge.step = static_cast<step_id>(get(step));
  gauge.progress = get(progress);
  gauge.load_done_bytes = get(load_done_bytes);
  gauge.load_total_bytes = get(load_total_bytes);
  gauge.bytes_held = get(bytes_held);
  gauge.state_bytes = get(state_bytes);
  gauge.steps = get(steps);
  gauge.rows = get(rows);
  gauge.compute_ns = get(compute_ns);
  gauge.collective_ns = get(collective_ns);
  gauge.wait_ns = get(wait_ns);
  gauge.send_ns = get(send_ns);
  gauge.collectives = get(collectives);
  gauge.collective_bytes = get(collective_bytes);
  gauge.frames_sent = get(frames_sent);
  gauge.payload_bytes_sent = get(payload_bytes_sent);
  gauge.header_bytes_sent = get(header_bytes_sent);
  gauge.frames_received = get(frames_received);
  gauge.tensor_copies = get(tensor_copies);
  gauge.stale_frames = get(stale_frames);
  gauge.refused_frames = get(refused_frames);
  gauge.boundary_frames = get(boundary_frames);
  gauge.boundary_bytes = get(boundary_bytes);
  gauge.rows_replayed = get(rows_replayed);
  gauge.rows_resent = get(rows_resent);
  gauge.state_bytes_sent = get(state_bytes_sent);
  return gauge;
}

} // namespace troupe::actors
