#include "actors/cli/bench/message_turns.hpp"

#include "actors/cli/bench/report.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

namespace troupe::cli {

using clock = std::chrono::steady_clock;
using transport::channel;

namespace {

double microseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::micro>(clock::now() - start).count();
}

void drain(channel& wires) {
  while (!wires.idle())
    wires.receive();
}

} // namespace

result<compute::buffer> filled_buffer(std::size_t bytes) {
  auto made = compute::buffer::allocate(bytes);
  if (made)
    std::memset(made->data(), 1, bytes);
  return made;
}

result<void> join_channels(channel& mine, std::size_t which, const measuring_process& here) {
  here.board.put_address(here.rank, which, mine.address());
  here.board.meet(2);
  return mine.connect(here.board.address(1 - here.rank, which));
}

double one_way_us(channel& wires,
                  measuring_process& here,
                  const compute::buffer& payload,
                  std::uint32_t turns) {
  std::vector<double> times;
  turn_block block(here, turns);
  do {
    block.begin_turn();
    const auto start = clock::now();
    if (here.rank == 0)
      wires.post(payload);
    while (wires.receive() == 0) {
    }
    if (here.rank == 1)
      wires.post(payload);
    else if (block.counts())
      times.push_back(microseconds_since(start) / 2);
  } while (!block.over());
  drain(wires);
  return median_of(std::move(times));
}

double stream_gb_s(channel& wires,
                   const measuring_process& here,
                   const compute::buffer& payload,
                   const compute::buffer& answer,
                   std::size_t count) {
  const auto warm = count / 5;
  std::size_t posted = 0;
  std::size_t done = 0; // Rank 0: answers that came; rank 1: messages that came.
  auto start = clock::now();
  while (done < count) {
    if (here.rank == 0)
      for (; posted < count && posted < done + 4; ++posted)
        wires.post(payload);
    const auto came = wires.receive();
    for (std::size_t i = 0; i < came && here.rank == 1; ++i)
      wires.post(answer);
    if (done < warm && done + came >= warm)
      start = clock::now();
    done += came;
  }
  drain(wires);
  const auto bytes = static_cast<double>(payload.size() * (count - warm));
  return here.rank == 0 ? bytes / microseconds_since(start) / 1000 : 0;
}

void part_channels(std::initializer_list<channel*> all, const measuring_process& here) {
  here.board.leave();
  while (!here.board.all_left(2))
    for (auto* wires : all)
      wires->receive();
}

std::string size_text(std::size_t bytes) {
  if (bytes >= 1 << 20)
    return fmt::format("{} MiB", bytes >> 20);
  return bytes >= 1 << 10 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

} // namespace troupe::cli
