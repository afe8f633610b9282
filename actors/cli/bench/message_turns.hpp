#pragma once
// Turns of messages between two processes of a measure: what transport_part and boundary_part time.

#include "actors/cli/bench/processes.hpp"
#include "transport/ucx/channel.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::cli {

/// A payload of ones.
result<compute::buffer> filled_buffer(std::size_t bytes);

/// The address of `mine` for the other process, and its own taken; `which` of the board's.
result<void>
join_channels(transport::channel& mine, std::size_t which, const measuring_process& here);

/// A block of `turns` times there and back: median microseconds one way (of rank 0; rank 1 answers
/// and gets 0).
double one_way_us(transport::channel& wires,
                  measuring_process& here,
                  const compute::buffer& payload,
                  std::uint32_t turns);

/// Gigabytes a second of `count` messages from rank 0 to rank 1, four under way, each answered by
/// `answer`; the first fifth is not counted. 0 for rank 1.
double stream_gb_s(transport::channel& wires,
                   const measuring_process& here,
                   const compute::buffer& payload,
                   const compute::buffer& answer,
                   std::size_t count);

/// The last meeting of two processes, in which each serves what the other still has under way.
void part_channels(std::initializer_list<transport::channel*> all, const measuring_process& here);

/// "64 B", "8 KiB", "16 MiB".
std::string size_text(std::size_t bytes);

} // namespace troupe::cli
