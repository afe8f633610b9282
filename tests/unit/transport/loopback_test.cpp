#include "transport/loopback.hpp"

#include <boost/test/unit_test.hpp>

#include <poll.h>

#include <thread>

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

constexpr epoch_token token{std::byte{42}};

frame message(std::uint64_t tag, compute::buffer payload = {}) {
  frame made;
  made.header.kind = first_message_kind;
  made.header.tag = tag;
  made.payload = std::move(payload);
  return made;
}

compute::buffer some_bytes(std::size_t count) {
  auto made = compute::buffer::allocate(count);
  BOOST_REQUIRE(made);
  return *made;
}

struct end {
  std::unique_ptr<transport::transport> wire;
  std::vector<frame> frames;
  std::vector<std::pair<peer_key, error>> downs;

  explicit end(loopback_hub& hub, const loopback_options& options = {}) {
    auto made = hub.make_end(options);
    BOOST_REQUIRE(made);
    wire = std::move(*made);
    wire->on_frame([this](peer_key, frame&& received) { frames.push_back(std::move(received)); });
    wire->on_down([this](peer_key peer, const error& why) { downs.emplace_back(peer, why); });
  }
};

struct pair_of_ends {
  loopback_hub hub;
  end a{hub};
  end b{hub};

  void link(epoch_id epoch = epoch_id{1}) {
    a.wire->start_epoch(epoch, 0, token);
    b.wire->start_epoch(epoch, 1, token);
    BOOST_REQUIRE(a.wire->connect(1, b.wire->address()));
    BOOST_REQUIRE(b.wire->connect(0, a.wire->address()));
    settle();
    BOOST_REQUIRE(a.wire->heard(1));
    BOOST_REQUIRE(b.wire->heard(0));
  }

  void settle() {
    while (a.wire->progress() + b.wire->progress() != 0) {
    }
  }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(loopback, pair_of_ends)

BOOST_AUTO_TEST_CASE(a_payload_arrives_by_reference_and_in_order) {
  link();
  auto payload = some_bytes(100);
  BOOST_REQUIRE(a.wire->send(1, message(1, payload)));
  BOOST_REQUIRE(a.wire->send(1, message(2)));
  settle();
  BOOST_REQUIRE(b.frames.size() == 2u);
  BOOST_TEST(b.frames[0].payload.data() == payload.data());
  BOOST_TEST(b.frames[0].header.payload_bytes == 100u);
  BOOST_TEST(b.frames[0].header.source == 0u);
  BOOST_TEST(b.frames[0].header.destination == 1u);
  BOOST_TEST(b.frames[0].header.sequence == 1u);
  BOOST_TEST(b.frames[1].header.tag == 2u);
  BOOST_TEST(b.wire->counters().frames_received == 2u);
  BOOST_TEST(b.wire->counters().payload_copies == 0u);
}

BOOST_AUTO_TEST_CASE(frames_wait_for_a_peer_that_starts_its_epoch_later) {
  a.wire->start_epoch(epoch_id{1}, 0, token);
  BOOST_REQUIRE(a.wire->connect(1, b.wire->address()));
  BOOST_REQUIRE(a.wire->send(1, message(1)));
  settle();
  BOOST_TEST(b.frames.empty());
  BOOST_TEST(b.wire->counters().frames_dropped_stale == 1u); // The hello that came too early.
  b.wire->start_epoch(epoch_id{1}, 1, token);
  BOOST_REQUIRE(b.wire->connect(0, a.wire->address()));
  settle();
  BOOST_TEST(b.frames.size() == 1u);
}

BOOST_AUTO_TEST_CASE(frames_of_an_old_epoch_are_dropped_and_counted) {
  link();
  BOOST_REQUIRE(a.wire->send(1, message(1)));
  b.wire->start_epoch(epoch_id{2}, 1, token);
  settle();
  BOOST_TEST(b.frames.empty());
  BOOST_TEST(b.wire->counters().frames_dropped_stale == 1u);
  BOOST_TEST(!b.wire->heard(0));
}

BOOST_AUTO_TEST_CASE(a_peer_with_another_token_is_never_heard) {
  a.wire->start_epoch(epoch_id{1}, 0, token);
  b.wire->start_epoch(epoch_id{1}, 1, epoch_token{std::byte{43}});
  BOOST_REQUIRE(a.wire->connect(1, b.wire->address()));
  BOOST_REQUIRE(b.wire->connect(0, a.wire->address()));
  BOOST_REQUIRE(b.wire->send(0, message(1)));
  settle();
  BOOST_TEST(!a.wire->heard(1));
  BOOST_TEST(a.frames.empty());
  BOOST_TEST(a.wire->counters().frames_refused == 1u);
}

BOOST_AUTO_TEST_CASE(goodbye_is_no_fault) {
  link();
  BOOST_REQUIRE(a.wire->send(1, message(1)));
  BOOST_REQUIRE(a.wire->close(1s));
  settle();
  BOOST_TEST(b.frames.size() == 1u);
  BOOST_REQUIRE(b.downs.size() == 1u);
  BOOST_TEST((b.downs[0].second.code == errc::cancelled));
  auto refused = b.wire->send(0, message(2));
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::unreachable));
}

BOOST_AUTO_TEST_CASE(an_end_that_vanishes_is_down) {
  link();
  b.wire.reset();
  BOOST_REQUIRE(a.wire->send(1, message(1)));
  a.wire->progress();
  BOOST_REQUIRE(a.downs.size() == 1u);
  BOOST_TEST((a.downs[0].second.code == errc::unreachable));
  BOOST_TEST(!a.wire->send(1, message(2)));
}

BOOST_AUTO_TEST_CASE(too_many_waiting_bytes_are_overload_but_one_frame_always_goes) {
  end small(hub, {.queued_bytes_limit = 1000});
  small.wire->start_epoch(epoch_id{1}, 2, token);
  b.wire->start_epoch(epoch_id{1}, 1, token);
  BOOST_REQUIRE(small.wire->connect(1, b.wire->address()));
  BOOST_REQUIRE(b.wire->connect(2, small.wire->address()));
  while (small.wire->progress() + b.wire->progress() != 0) {
  }
  BOOST_REQUIRE(small.wire->send(1, message(1, some_bytes(5000))));
  auto refused = small.wire->send(1, message(2, some_bytes(1)));
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::overloaded));
  b.wire->progress();
  BOOST_TEST(small.wire->send(1, message(2, some_bytes(1))).has_value());
}

BOOST_AUTO_TEST_CASE(a_silent_peer_is_down_after_the_deadline) {
  end hasty(hub, {.connect_deadline = 20ms});
  hasty.wire->start_epoch(epoch_id{1}, 2, token);
  BOOST_REQUIRE(hasty.wire->connect(1, b.wire->address()));
  const auto give_up = std::chrono::steady_clock::now() + 5s;
  while (hasty.downs.empty() && std::chrono::steady_clock::now() < give_up)
    hasty.wire->progress();
  BOOST_REQUIRE(hasty.downs.size() == 1u);
  BOOST_TEST((hasty.downs[0].second.code == errc::timed_out));
  BOOST_TEST(hasty.downs[0].second.what.find("20 ms") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_address_of_nobody_and_oneself_are_refused) {
  a.wire->start_epoch(epoch_id{1}, 0, token);
  BOOST_TEST(!a.wire->connect(1, peer_address{}));
  BOOST_TEST(!a.wire->connect(1, peer_address{std::vector<std::byte>(8, std::byte{9})}));
  BOOST_TEST(!a.wire->connect(0, a.wire->address()));
}

BOOST_AUTO_TEST_CASE(progress_within_a_handler_keeps_the_order) {
  link();
  std::vector<std::uint64_t> seen;
  b.wire->on_frame([&](peer_key, frame&& received) {
    seen.push_back(received.header.tag);
    b.wire->progress();
  });
  for (std::uint64_t i = 0; i < 20; ++i)
    BOOST_REQUIRE(a.wire->send(1, message(i)));
  settle();
  BOOST_REQUIRE(seen.size() == 20u);
  for (std::uint64_t i = 0; i < 20; ++i)
    BOOST_TEST(seen[i] == i);
}

BOOST_AUTO_TEST_CASE(ends_of_two_threads_wake_each_other) {
  link();
  constexpr std::uint64_t rounds = 2000;
  std::uint64_t answered = 0;
  std::uint64_t returned = 0;
  b.wire->on_frame(
    [&](peer_key, frame&& received) { answered += b.wire->send(0, std::move(received)) ? 1 : 0; });
  a.wire->on_frame([&](peer_key, frame&&) { ++returned; });
  const auto drive = [](transport::transport& wire, const std::uint64_t& count) {
    while (count < rounds) {
      if (wire.progress() != 0 || !wire.arm())
        continue;
      pollfd readable{wire.event_fd(), POLLIN, 0};
      if (::poll(&readable, 1, 5000) != 1)
        return; // Nobody woke us: the count tells.
    }
  };
  for (std::uint64_t i = 0; i < rounds; ++i)
    BOOST_REQUIRE(a.wire->send(1, message(i)));
  std::thread other([&] { drive(*b.wire, answered); });
  drive(*a.wire, returned);
  other.join();
  BOOST_TEST(answered == rounds);
  BOOST_TEST(returned == rounds);
}

BOOST_AUTO_TEST_SUITE_END()
