// bench_transport (actors/cli/bench/bench_run.hpp).
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/message_turns.hpp"

#include <fmt/format.h>

#include <array>

namespace troupe::cli {

using transport::channel;

namespace {

constexpr std::chrono::seconds deadline{60};
constexpr std::size_t blocks = 7; ///< Of each size and path, turn by turn.

struct message_size {
  std::size_t bytes;
  std::uint32_t turns; ///< Of a block.
};

constexpr std::array sizes{
  message_size{64, 600}, message_size{8 << 10, 400}, message_size{256 << 10, 60}};
constexpr std::size_t large_bytes = std::size_t{16} << 20;
constexpr std::size_t large_count = 10;

constexpr std::size_t raw = 0;
constexpr std::size_t framed = 1;

/// Values are kept by size and path; the large ones come last.
constexpr std::size_t kind_of(std::size_t size, std::size_t path) {
  return size * 2 + path;
}

result<void> measure(measuring_process& here, const std::string& transports) {
  auto raw_wires = transport::make_raw_channel(transports);
  if (!raw_wires)
    return raw_wires.error();
  auto frames = transport::make_frame_channel(transports, here.rank);
  if (!frames)
    return frames.error();
  const std::array<channel*, 2> paths{raw_wires->get(), frames->get()};
  for (const auto path : {raw, framed})
    if (auto joined = join_channels(*paths[path], path, here); !joined)
      return joined;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    const auto payload = filled_buffer(sizes[size].bytes);
    if (!payload)
      return payload.error();
    for (std::size_t block = 0; block < blocks; ++block)
      for (const auto path : {raw, framed}) {
        const auto us = one_way_us(*paths[path], here, *payload, sizes[size].turns);
        if (here.rank == 0)
          here.board.add(kind_of(size, path), us);
      }
  }
  const auto large = filled_buffer(large_bytes);
  const auto answer = filled_buffer(8);
  if (!large || !answer)
    return large ? answer.error() : large.error();
  for (std::size_t block = 0; block < blocks; ++block)
    for (const auto path : {raw, framed}) {
      const auto rate = stream_gb_s(*paths[path], here, *large, *answer, large_count);
      if (here.rank == 0)
        here.board.add(kind_of(sizes.size(), path), rate);
    }
  part_channels({paths[raw], paths[framed]}, here);
  return {};
}

result<void> measure_wires(bench_run& run, const std::string& name, const std::string& transports) {
  if (auto on = run.begin("messages through " + name); !on)
    return on;
  const auto values =
    run_processes(2, deadline, [&](measuring_process& here) { return measure(here, transports); });
  if (!values)
    return with_context("messages through " + name, values.error());
  for (std::size_t size = 0; size <= sizes.size(); ++size) {
    const bool is_large = size == sizes.size();
    const auto bytes = is_large ? large_bytes : sizes[size].bytes;
    const auto what =
      fmt::format("{} {}, {}", size_text(bytes), is_large ? "in a stream" : "one way", name);
    const auto& ours = (*values)[kind_of(size, framed)];
    run.add(row_beside(row_of("transport", what, is_large ? "GB/s" : "us", {}),
                       ours,
                       (*values)[kind_of(size, raw)],
                       "raw UCX active messages"));
  }
  return {};
}

} // namespace

result<void> bench_transport(bench_run& run) {
  if (auto measured = measure_wires(run, "shared memory", transport::shared_memory_transports);
      !measured)
    return measured;
  return measure_wires(run, "loopback TCP", transport::tcp_transports);
}

} // namespace troupe::cli
