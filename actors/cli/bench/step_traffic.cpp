#include "actors/cli/bench/step_traffic.hpp"

#include "actors/messages/clients.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds status_deadline{2000};
constexpr std::chrono::milliseconds patience{5000}; ///< Counters arrive with the nodes' beats.

/// Counters of all ranks, and rows of the one that has seen fewest.
struct sums {
  std::uint64_t rows = ~std::uint64_t{0};
  std::uint64_t boundary_bytes = 0;
  std::uint64_t boundary_frames = 0;
  std::uint64_t collective_bytes = 0;
  std::uint64_t collectives = 0;
  std::size_t ranks = 0;
};

result<sums> read_sums(actors::cluster_client& client) {
  const auto status = client.status(status_deadline);
  if (!status)
    return status.error();
  sums read;
  read.ranks = status->ranks.size();
  for (const auto& rank : status->ranks) {
    const auto& gauge = rank.gauge;
    read.rows = std::min(read.rows, gauge.rows);
    read.boundary_bytes += gauge.boundary_bytes;
    read.boundary_frames += gauge.boundary_frames;
    read.collective_bytes += gauge.collective_bytes;
    read.collectives += gauge.collectives;
  }
  return read;
}

/// The counters once nothing moves any more: two looks that are alike.
result<sums> read_settled(actors::cluster_client& client, std::uint64_t least_rows) {
  const auto give_up = clock::now() + patience;
  auto last = read_sums(client);
  while (last && clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // More than a beat.
    auto now = read_sums(client);
    if (now && now->rows >= least_rows && now->rows == last->rows
        && now->collectives == last->collectives && now->boundary_frames == last->boundary_frames)
      return now;
    last = std::move(now);
  }
  if (!last)
    return last;
  return error{errc::timed_out, "the ranks' counters did not come to rest"};
}

} // namespace

result<step_traffic> traffic_of_token(actors::cluster_client& client,
                                      const actors::text_request& one) {
  const auto before = read_settled(client, 0);
  if (!before)
    return before.error();
  const std::atomic<bool> never{false};
  const auto answers = client.generate({one}, {}, never);
  if (!answers)
    return answers.error();
  const auto rows = one.tokens.size() + answers->front().tokens.size() - 1;
  const auto after = read_settled(client, before->rows + rows);
  if (!after)
    return after.error();
  const auto each = [&](std::uint64_t sums::*counter) {
    return static_cast<double>(*after.*counter - *before.*counter)
           / static_cast<double>(after->rows - before->rows);
  };
  const auto ranks = static_cast<double>(after->ranks);
  return step_traffic{.boundary_bytes = each(&sums::boundary_bytes),
                      .boundary_messages = each(&sums::boundary_frames),
                      .reduction_bytes = each(&sums::collective_bytes) / ranks,
                      .reductions = each(&sums::collectives) / ranks};
}

} // namespace troupe::cli
