// bench_collectives (actors/cli/bench/bench_run.hpp).
#include "actors/cli/bench/bench_run.hpp"
#include "actors/cli/bench/message_turns.hpp"
#include "actors/cli/bench/processes.hpp"
#include "transport/collectives/endpoint_collective.hpp"
#include "transport/collectives/shared_memory_collective.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sched.h>

namespace troupe::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds deadline{60};
constexpr std::size_t blocks = 7;

struct vector_size {
  std::size_t bytes;
  std::uint32_t turns; ///< Of a block.
};

constexpr std::array sizes{vector_size{8 << 10, 400}, vector_size{256 << 10, 60}};
constexpr std::size_t largest = 256 << 10;

enum path : std::size_t { in_memory, over_frames, at_least };

constexpr std::size_t kind_of(std::size_t size, std::size_t path) {
  return size * 3 + path;
}

/// What an all-reduce cannot do without: each member writes its values where the others see them,
/// raises a flag, and adds what all wrote. No check, no deadline, nothing but that.
class reduction_floor {
public:
  static constexpr std::size_t bytes_of(std::size_t members) {
    return members * (sizeof(line) + 2 * largest);
  }

  reduction_floor(std::span<std::byte> memory, std::size_t rank, std::size_t members)
    : flags_(reinterpret_cast<line*>(memory.data())),
      values_(reinterpret_cast<float*>(memory.data() + members * sizeof(line))), rank_(rank),
      members_(members) {}

  void reduce(std::span<float> values) {
    ++turn_;
    std::copy(values.begin(), values.end(), slot(rank_));
    flags_[rank_].turn.store(turn_, std::memory_order_release);
    for (std::size_t member = 0; member < members_; ++member)
      for (std::size_t looks = 0; flags_[member].turn.load(std::memory_order_acquire) < turn_;
           ++looks)
        if (looks % 1024 == 1023)
          ::sched_yield(); // More members than cores.
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = slot(0)[i] + slot(1)[i];
    for (std::size_t member = 2; member < members_; ++member)
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += slot(member)[i];
  }

private:
  struct alignas(64) line {
    std::atomic<std::uint64_t> turn;
  };

  /// Two a member, in turn: who raises a flag again has read all of the turn before.
  float* slot(std::size_t member) const {
    return values_ + (member * 2 + turn_ % 2) * (largest / sizeof(float));
  }

  line* flags_;
  float* values_;
  const std::size_t rank_;
  const std::size_t members_;
  std::uint64_t turn_ = 0;
};

/// Median microseconds of one call, of a block of them.
template <class Reduce>
result<double> time_of(measuring_process& here,
                       std::size_t members,
                       const vector_size& size,
                       const Reduce& reduce) {
  std::vector<float> values(size.bytes / sizeof(float));
  std::vector<double> times;
  turn_block block(here, size.turns);
  do {
    block.begin_turn();
    std::fill(values.begin(), values.end(), 1.0f);
    const auto start = clock::now();
    if (auto done = reduce(values); !done)
      return done.error();
    const std::chrono::duration<double, std::micro> taken = clock::now() - start;
    if (block.counts())
      times.push_back(taken.count());
    if (values.back() != static_cast<float>(members))
      return error{errc::compute_error, "a sum of the measure is wrong"};
  } while (!block.over());
  return median_of(std::move(times));
}

/// The wires of a group whose members know each other from the board.
result<std::unique_ptr<transport::transport>>
open_wires(unsigned rank, unsigned ranks, process_board& board) {
  transport::ucx_options options;
  options.transports = transport::shared_memory_transports;
  auto wires = transport::make_ucx_transport(options);
  if (!wires)
    return wires;
  (*wires)->start_epoch(epoch_id{1}, rank, {});
  board.put_address(rank, 0, (*wires)->address().bytes);
  board.meet(ranks);
  for (unsigned member = 0; member < ranks; ++member) {
    const auto address = board.address(member, 0);
    if (member == rank)
      continue;
    if (auto joined = (*wires)->connect(member, {{address.begin(), address.end()}}); !joined)
      return joined.error();
  }
  return wires;
}

struct member {
  measuring_process& here;
  unsigned ranks;
  compute::collective& memory;
  compute::collective& frames;
  reduction_floor& floor;
};

result<void> measure_turns(const member& one) {
  for (std::size_t size = 0; size < sizes.size(); ++size)
    for (std::size_t block = 0; block < blocks; ++block)
      for (const auto way : {in_memory, over_frames, at_least}) {
        const auto us = time_of(one.here, one.ranks, sizes[size], [&](std::span<float> values) {
          if (way == at_least) {
            one.floor.reduce(values);
            return result<void>{};
          }
          return (way == in_memory ? one.memory : one.frames).all_reduce_sum(values);
        });
        if (!us)
          return us.error();
        if (one.here.rank == 0)
          one.here.board.add(kind_of(size, way), *us);
      }
  return {};
}

result<void> measure(measuring_process& here,
                     unsigned ranks,
                     const std::vector<std::byte>& segment,
                     const std::vector<std::byte>& floor_segment) {
  const auto rank = here.rank;
  auto mine = transport::shared_segment::open(segment);
  auto bare = transport::shared_segment::open(floor_segment);
  if (!mine || !bare)
    return mine ? bare.error() : mine.error();
  auto memory = transport::shared_memory_collective::make(std::move(*mine), rank, ranks, {});
  if (!memory)
    return memory.error();
  auto wires = open_wires(rank, ranks, here.board);
  if (!wires)
    return wires.error();
  std::vector<transport::peer_key> keys;
  for (unsigned key = 0; key < ranks; ++key)
    keys.push_back(key);
  auto frames = transport::endpoint_collective::make(**wires, keys, rank, {.epoch = epoch_id{1}});
  if (!frames)
    return frames.error();
  (*wires)->on_frame([&](transport::peer_key from, transport::frame&& received) {
    (*frames)->accept(from, std::move(received));
  });
  reduction_floor floor(bare->bytes(), rank, ranks);
  auto measured = measure_turns({here, ranks, **memory, **frames, floor});
  [[maybe_unused]] const auto closed = (*wires)->close(std::chrono::seconds(2));
  return measured;
}

} // namespace

result<void> bench_collectives(bench_run& run, unsigned ranks) {
  if (auto on = run.begin(fmt::format("all-reduce of {} ranks", ranks)); !on)
    return on;
  using transport::shared_memory_collective;
  auto segment = transport::shared_segment::create(shared_memory_collective::segment_bytes(ranks));
  auto bare = transport::shared_segment::create(reduction_floor::bytes_of(ranks));
  if (!segment || !bare)
    return segment ? bare.error() : segment.error();
  const auto values = run_processes(ranks, deadline, [&](measuring_process& here) {
    return measure(here, ranks, segment->describe(), bare->describe());
  });
  if (!values)
    return with_context("all-reduce", values.error());
  for (std::size_t size = 0; size < sizes.size(); ++size)
    for (const auto way : {in_memory, over_frames}) {
      const auto what = fmt::format("all-reduce {}, {} ranks, {}",
                                    size_text(sizes[size].bytes),
                                    ranks,
                                    way == in_memory ? "shared memory" : "frames");
      run.add(row_beside(row_of("collectives", what, "us", {}),
                         (*values)[kind_of(size, way)],
                         (*values)[kind_of(size, at_least)],
                         "two copies through the cache, and the sum"));
    }
  return {};
}

} // namespace troupe::cli
