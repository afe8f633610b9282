#pragma once
// A group of members, each a thread of its own, over any implementation of compute::collective.

#include "transport/collectives/endpoint_collective.hpp"
#include "transport/collectives/shared_memory_collective.hpp"
#include "transport/loopback.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <boost/test/unit_test.hpp>

#include <barrier>
#include <optional>
#include <thread>

namespace troupe::test {

using namespace std::chrono_literals;

using outcome = std::optional<error>; ///< nullopt = no failure.

inline outcome outcome_of(const result<void>& found) {
  return found ? outcome() : outcome(found.error());
}

/// What one member does with its handle.
using member_body = std::function<outcome(std::size_t rank, compute::collective&)>;

struct shared_memory_group {
  static constexpr const char* name = "shared memory";

  static std::vector<outcome>
  run(std::size_t members, const transport::collective_options& options, const member_body& body) {
    auto segment = transport::shared_segment::create(
      transport::shared_memory_collective::segment_bytes(members));
    BOOST_REQUIRE(segment);
    const auto told = segment->describe();
    std::vector<outcome> outcomes(members);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < members; ++rank)
      threads.emplace_back([&, rank] {
        auto mine = transport::shared_segment::open(told);
        if (!mine) {
          outcomes[rank] = mine.error();
          return;
        }
        auto made =
          transport::shared_memory_collective::make(std::move(*mine), rank, members, options);
        outcomes[rank] = made ? body(rank, **made) : outcome(made.error());
      });
    for (auto& thread : threads)
      thread.join();
    return outcomes;
  }
};

/// Members over transports that `make_wires` makes on their threads.
template <class MakeWires>
std::vector<outcome> run_over_wires(std::size_t members,
                                    const transport::collective_options& options,
                                    const member_body& body,
                                    MakeWires make_wires) {
  constexpr transport::epoch_token token{std::byte{9}};
  std::vector<transport::peer_address> addresses(members);
  std::vector<transport::peer_key> keys(members);
  for (std::size_t m = 0; m < members; ++m)
    keys[m] = static_cast<transport::peer_key>(10 + m);
  std::barrier all_here(static_cast<std::ptrdiff_t>(members));
  std::vector<outcome> outcomes(members);
  const auto member = [&](std::size_t rank) {
    std::unique_ptr<transport::transport> wires = make_wires();
    wires->start_epoch(options.epoch, keys[rank], token);
    addresses[rank] = wires->address();
    all_here.arrive_and_wait();
    auto made = transport::endpoint_collective::make(*wires, keys, rank, options);
    auto& group = **made;
    wires->on_frame(
      [&](transport::peer_key from, transport::frame&& f) { group.accept(from, std::move(f)); });
    wires->on_down([&](transport::peer_key peer, const error& why) {
      if (why.code != errc::cancelled)
        group.member_down(peer, why);
    });
    for (std::size_t m = 0; m < members; ++m)
      if (m != rank)
        if (auto linked = wires->connect(keys[m], addresses[m]); !linked)
          outcomes[rank] = linked.error(); // Boost.Test's own checks are for one thread.
    if (!outcomes[rank])
      outcomes[rank] = body(rank, group);
    // What this member posted last reaches the others also when it is the first to be done.
    [[maybe_unused]] const auto closed = wires->close(2s);
    all_here.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < members; ++rank)
    threads.emplace_back(member, rank);
  for (auto& thread : threads)
    thread.join();
  return outcomes;
}

struct loopback_group {
  static constexpr const char* name = "loopback";

  static std::vector<outcome>
  run(std::size_t members, const transport::collective_options& options, const member_body& body) {
    transport::loopback_hub hub;
    return run_over_wires(members, options, body, [&] { return std::move(*hub.make_end()); });
  }
};

struct ucx_group {
  static constexpr const char* name = "ucx";

  static std::vector<outcome>
  run(std::size_t members, const transport::collective_options& options, const member_body& body) {
    transport::prepare_environment();
    return run_over_wires(members, options, body, [] {
      return std::move(*transport::make_ucx_transport({.transports = "posix,sysv,cma,self"}));
    });
  }
};

} // namespace troupe::test
