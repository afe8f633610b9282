#include "transport/host_identity.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <boost/test/unit_test.hpp>

#include <poll.h>

#include <cstring>
#include <numeric>
#include <random>
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

compute::buffer random_bytes(std::size_t count, std::uint64_t seed) {
  auto made = compute::buffer::allocate(count);
  BOOST_REQUIRE(made);
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i + 8 <= count; i += 8) {
    const auto word = random();
    std::memcpy(made->data() + i, &word, 8);
  }
  for (std::size_t i = count / 8 * 8; i < count; ++i)
    made->data()[i] = static_cast<std::byte>(random());
  return *made;
}

std::uint64_t digest_of(const compute::buffer& content) {
  return digest({content.data(), content.size()});
}

struct end {
  std::unique_ptr<transport::transport> wire;
  std::vector<frame> frames;
  std::vector<std::pair<peer_key, error>> downs;

  explicit end(const ucx_options& options) {
    prepare_environment();
    auto made = make_ucx_transport(options);
    BOOST_REQUIRE(made);
    wire = std::move(*made);
    wire->on_frame([this](peer_key, frame&& received) { frames.push_back(std::move(received)); });
    wire->on_down([this](peer_key peer, const error& why) { downs.emplace_back(peer, why); });
  }
};

struct pair_of_ends {
  end a;
  end b;

  explicit pair_of_ends(const ucx_options& options) : a(options), b(options) {}

  void link(epoch_id epoch = epoch_id{1}) {
    a.wire->start_epoch(epoch, 0, token);
    b.wire->start_epoch(epoch, 1, token);
    BOOST_REQUIRE(a.wire->connect(1, b.wire->address()));
    BOOST_REQUIRE(b.wire->connect(0, a.wire->address()));
    BOOST_REQUIRE(until([this] { return a.wire->heard(1) && b.wire->heard(0); }));
  }

  template <class Condition>
  bool until(Condition reached, std::chrono::milliseconds deadline = 10s) {
    const auto give_up = std::chrono::steady_clock::now() + deadline;
    while (!reached()) {
      if (std::chrono::steady_clock::now() > give_up)
        return false;
      a.wire->progress();
      b.wire->progress();
    }
    return true;
  }

  void settle() {
    const auto enough = std::chrono::steady_clock::now() + 30ms;
    until([&] { return std::chrono::steady_clock::now() > enough; });
  }
};

const ucx_options over_tcp{.transports = "tcp", .devices = {"lo"}};
const ucx_options over_memory{.transports = "posix,sysv,cma,self"};

void mixed_sizes_arrive_in_order(const ucx_options& options) {
  pair_of_ends ends(options);
  ends.link();
  const std::size_t sizes[] = {
    0, 16 << 20, 1, 100, 8 << 10, 64 << 10, 4 << 20, 64, (64 << 10) - 1, 0};
  std::vector<std::uint64_t> sent;
  for (std::size_t round = 0; round < 3; ++round) {
    for (const auto size : sizes) {
      auto payload = random_bytes(size, sent.size());
      sent.push_back(digest_of(payload));
      BOOST_REQUIRE(ends.a.wire->send(1, message(sent.size() - 1, std::move(payload))));
    }
  }
  BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == sent.size(); }));
  for (std::size_t i = 0; i < sent.size(); ++i) {
    BOOST_TEST(ends.b.frames[i].header.tag == i);
    BOOST_TEST(ends.b.frames[i].header.sequence == i + 1);
    BOOST_TEST(digest_of(ends.b.frames[i].payload) == sent[i]);
  }
  BOOST_TEST(ends.b.downs.empty());
}

} // namespace

BOOST_AUTO_TEST_CASE(mixed_sizes_arrive_in_order_over_shared_memory) {
  mixed_sizes_arrive_in_order(over_memory);
}

BOOST_AUTO_TEST_CASE(mixed_sizes_arrive_in_order_over_tcp) {
  mixed_sizes_arrive_in_order(over_tcp);
}

BOOST_AUTO_TEST_CASE(a_link_says_which_transports_were_chosen) {
  pair_of_ends memory(over_memory);
  memory.link();
  auto found = memory.a.wire->link(1);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->shared_memory);
  BOOST_TEST(found->transports.find("/memory") != std::string::npos);
  pair_of_ends tcp(over_tcp);
  tcp.link();
  found = tcp.a.wire->link(1);
  BOOST_REQUIRE(found);
  BOOST_TEST(!found->shared_memory);
  BOOST_TEST(found->transports == "tcp/lo");
  BOOST_TEST(!tcp.a.wire->link(7));
}

BOOST_AUTO_TEST_CASE(ends_of_one_host_do_not_fall_to_tcp_by_themselves) {
  pair_of_ends ends(ucx_options{});
  ends.link();
  auto found = ends.a.wire->link(1);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->shared_memory, found->transports);
}

BOOST_AUTO_TEST_CASE(boundary_payloads_are_not_copied_on_shared_memory) {
  pair_of_ends ends(over_memory);
  ends.link();
  const auto before = ends.b.wire->counters().payload_copies;
  for (const std::size_t size : {512, 1536, 4096, 8192, 65536, 1 << 20})
    BOOST_REQUIRE(ends.a.wire->send(1, message(size, random_bytes(size, size))));
  BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == 6; }));
  BOOST_TEST(ends.b.wire->counters().payload_copies == before);
  for (const auto& received : ends.b.frames)
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(received.payload.data()) % 8 == 0u);
}

BOOST_AUTO_TEST_CASE(frames_wait_for_a_peer_that_starts_its_epoch_later) {
  pair_of_ends ends(over_memory);
  ends.a.wire->start_epoch(epoch_id{1}, 0, token);
  BOOST_REQUIRE(ends.a.wire->connect(1, ends.b.wire->address()));
  BOOST_REQUIRE(ends.a.wire->send(1, message(1)));
  ends.settle();
  BOOST_TEST(ends.b.frames.empty());
  BOOST_TEST(ends.b.wire->counters().frames_dropped_stale == 1u);
  ends.b.wire->start_epoch(epoch_id{1}, 1, token);
  BOOST_REQUIRE(ends.b.wire->connect(0, ends.a.wire->address()));
  BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == 1; }));
}

BOOST_AUTO_TEST_CASE(a_new_epoch_uses_the_wires_again_and_drops_the_old_frames) {
  pair_of_ends ends(over_tcp);
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
    ends.link(epoch_id{epoch});
    ends.a.frames.clear();
    ends.b.frames.clear();
    BOOST_REQUIRE(ends.a.wire->send(1, message(epoch, random_bytes(2 << 20, epoch))));
    BOOST_REQUIRE(ends.b.wire->send(0, message(epoch, random_bytes(100, epoch))));
    if (epoch % 2 == 0)
      continue; // Left under way: it must not show up in the next epoch.
    BOOST_REQUIRE(ends.until([&] { return !ends.a.frames.empty() && !ends.b.frames.empty(); }));
    BOOST_TEST(ends.a.frames.size() == 1u);
    BOOST_TEST(ends.b.frames.size() == 1u);
    BOOST_TEST(ends.b.frames[0].header.tag == epoch);
    BOOST_TEST(ends.b.frames[0].header.sequence == 1u);
  }
  BOOST_TEST(ends.a.downs.empty());
  BOOST_TEST(ends.b.downs.empty());
  BOOST_TEST(ends.a.wire->counters().frames_dropped_stale > 0u);
}

BOOST_AUTO_TEST_CASE(a_wrong_token_is_refused_and_the_silence_is_noticed) {
  ucx_options hasty = over_memory;
  hasty.connect_deadline = 100ms;
  pair_of_ends ends(hasty);
  ends.a.wire->start_epoch(epoch_id{1}, 0, token);
  ends.b.wire->start_epoch(epoch_id{1}, 1, epoch_token{std::byte{43}});
  BOOST_REQUIRE(ends.a.wire->connect(1, ends.b.wire->address()));
  BOOST_REQUIRE(ends.b.wire->connect(0, ends.a.wire->address()));
  BOOST_REQUIRE(ends.b.wire->send(0, message(1)));
  BOOST_REQUIRE(ends.until([&] { return !ends.a.downs.empty() && !ends.b.downs.empty(); }));
  BOOST_TEST((ends.a.downs[0].second.code == errc::timed_out));
  BOOST_TEST(ends.a.wire->counters().frames_refused == 1u);
  BOOST_TEST(ends.a.frames.empty());
}

BOOST_AUTO_TEST_CASE(E33_connecting_again_makes_one_new_link) {
  pair_of_ends ends(over_memory);
  ends.link();
  BOOST_REQUIRE(ends.a.wire->connect(1, ends.b.wire->address()));
  BOOST_REQUIRE(ends.a.wire->send(1, message(7)));
  BOOST_REQUIRE(ends.until([&] { return !ends.b.downs.empty(); }));
  BOOST_TEST((ends.b.downs[0].second.code == errc::unreachable));
  BOOST_REQUIRE(ends.b.wire->connect(0, ends.a.wire->address()));
  BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == 1; }));
  BOOST_REQUIRE(ends.b.wire->send(0, message(8)));
  BOOST_REQUIRE(ends.until([&] { return ends.a.frames.size() == 1; }));
  ends.settle();
  BOOST_TEST(ends.a.downs.empty());
  BOOST_TEST(ends.b.downs.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_flood_behind_a_large_message_is_held_at_the_sender) {
  pair_of_ends ends(over_memory);
  ends.link();
  BOOST_REQUIRE(ends.a.wire->send(1, message(0, random_bytes(32 << 20, 1))));
  std::uint64_t sent = 1;
  auto small = random_bytes(4096, 2);
  for (; sent <= 20'000; ++sent)
    BOOST_REQUIRE(ends.a.wire->send(1, message(sent, small)));
  std::uint64_t expected = 0;
  ends.b.wire->on_frame(
    [&](peer_key, frame&& received) { BOOST_REQUIRE(received.header.tag == expected++); });
  BOOST_REQUIRE(ends.until([&] { return expected == sent; }));
}

BOOST_AUTO_TEST_CASE(more_than_the_limit_is_overload) {
  ucx_options tight = over_memory;
  tight.queued_bytes_limit = 1 << 20;
  pair_of_ends ends(tight);
  ends.link();
  auto large = random_bytes(2 << 20, 1);
  BOOST_REQUIRE(ends.a.wire->send(1, message(1, large)));
  auto refused = ends.a.wire->send(1, message(2, random_bytes(64 << 10, 1)));
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == errc::overloaded));
  BOOST_REQUIRE(ends.until([&] { return ends.a.wire->drained(); }));
  BOOST_TEST(ends.a.wire->send(1, message(2, large)).has_value());
}

BOOST_AUTO_TEST_CASE(E34_digests_are_sent_and_hold) {
  ucx_options careful = over_tcp;
  careful.digest = true;
  pair_of_ends ends(careful);
  ends.link();
  auto payload = random_bytes(10'000, 1);
  BOOST_REQUIRE(ends.a.wire->send(1, message(1, payload)));
  BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == 1; }));
  const auto& received = ends.b.frames[0];
  BOOST_TEST(received.header.digest != 0u);
  BOOST_TEST(received.header.digest
             == seal(received.header, {received.payload.data(), received.payload.size()}));
}

BOOST_AUTO_TEST_CASE(E34_a_payload_that_changes_under_way_is_noticed) {
  ucx_options careful = over_memory;
  careful.digest = true;
  pair_of_ends ends(careful);
  ends.link();
  auto payload = random_bytes(1 << 20, 1);
  BOOST_REQUIRE(ends.a.wire->send(1, message(1, payload)));
  payload.data()[77] ^= std::byte{1}; // Large payloads are read when the receiver pulls them.
  BOOST_REQUIRE(ends.until([&] { return !ends.b.downs.empty(); }));
  BOOST_TEST((ends.b.downs[0].second.code == errc::contract_violation));
  BOOST_TEST(ends.b.downs[0].second.what.find("digest") != std::string::npos);
  BOOST_TEST(ends.b.frames.empty());
}

BOOST_AUTO_TEST_CASE(received_buffers_outlive_the_transport_and_die_on_any_thread) {
  std::vector<frame> kept;
  std::uint64_t expected = 0;
  {
    pair_of_ends ends(over_memory);
    ends.link();
    auto payload = random_bytes(4096, 9);
    expected = digest_of(payload);
    for (std::uint64_t i = 0; i < 10; ++i)
      BOOST_REQUIRE(ends.a.wire->send(1, message(i, payload)));
    BOOST_REQUIRE(ends.until([&] { return ends.b.frames.size() == 10; }));
    kept = std::move(ends.b.frames);
    std::thread([half = std::vector<frame>(kept.begin(), kept.begin() + 5)] {}).join();
    kept.erase(kept.begin(), kept.begin() + 5);
    ends.settle();
  }
  std::thread([&] {
    for (const auto& received : kept)
      BOOST_CHECK(digest_of(received.payload) == expected);
    kept.clear();
  }).join();
}

BOOST_AUTO_TEST_CASE(goodbye_is_no_fault_and_what_was_posted_arrives) {
  for (const auto& options : {over_memory, over_tcp}) {
    pair_of_ends ends(options);
    ends.link();
    BOOST_REQUIRE(ends.a.wire->send(1, message(1, random_bytes(3 << 20, 1))));
    std::thread other([&] {
      const auto give_up = std::chrono::steady_clock::now() + 5s;
      while (ends.b.downs.empty() && std::chrono::steady_clock::now() < give_up)
        ends.b.wire->progress();
      const auto linger = std::chrono::steady_clock::now() + 50ms;
      while (std::chrono::steady_clock::now() < linger)
        ends.b.wire->progress();
    });
    const auto before = std::chrono::steady_clock::now();
    const auto closed = ends.a.wire->close(2s);
    const auto took = std::chrono::steady_clock::now() - before;
    other.join();
    BOOST_TEST(closed.has_value());
    BOOST_TEST((took < 900ms));
    BOOST_TEST(ends.b.frames.size() == 1u);
    BOOST_REQUIRE(ends.b.downs.size() == 1u);
    BOOST_TEST((ends.b.downs[0].second.code == errc::cancelled));
    BOOST_TEST(!ends.b.wire->send(0, message(2)));
    BOOST_TEST(!ends.a.wire->send(1, message(2)));
  }
}

BOOST_AUTO_TEST_CASE(close_is_bounded_when_the_peer_does_not_take_what_was_posted) {
  pair_of_ends ends(over_memory);
  ends.link();
  BOOST_REQUIRE(ends.a.wire->send(1, message(1, random_bytes(8 << 20, 1))));
  const auto before = std::chrono::steady_clock::now();
  auto closed = ends.a.wire->close(200ms); // b makes no progress.
  BOOST_REQUIRE(!closed);
  BOOST_TEST((closed.error().code == errc::timed_out));
  BOOST_TEST((std::chrono::steady_clock::now() - before < 2s));
}

BOOST_AUTO_TEST_CASE(an_idle_end_sleeps_and_is_woken) {
  for (const auto& options : {over_memory, over_tcp}) {
    pair_of_ends ends(options);
    ends.link();
    ends.settle();
    std::thread later([&] {
      std::this_thread::sleep_for(50ms);
      BOOST_CHECK(ends.a.wire->send(1, message(1)));
      const auto linger = std::chrono::steady_clock::now() + 200ms;
      while (std::chrono::steady_clock::now() < linger)
        ends.a.wire->progress();
    });
    const auto give_up = std::chrono::steady_clock::now() + 5s;
    std::size_t sleeps = 0;
    while (ends.b.frames.empty() && std::chrono::steady_clock::now() < give_up) {
      if (ends.b.wire->progress() != 0 || !ends.b.wire->arm())
        continue;
      ++sleeps;
      pollfd readable{ends.b.wire->event_fd(), POLLIN, 0};
      ::poll(&readable, 1, 1000);
    }
    later.join();
    BOOST_TEST(ends.b.frames.size() == 1u);
    BOOST_TEST(sleeps >= 1u);
  }
}

BOOST_AUTO_TEST_CASE(E29_the_devices_of_the_host_are_listed) {
  auto devices = list_ucx_devices();
  BOOST_REQUIRE(devices);
  const auto has = [&](const std::string& name, const std::string& device) {
    for (const auto& found : *devices)
      if (found.transport == name && found.device == device)
        return true;
    return false;
  };
  BOOST_TEST(has("tcp", "lo"));
  BOOST_TEST(has("posix", "memory"));
  BOOST_TEST(ucx_version().find('.') != std::string::npos);
}

BOOST_AUTO_TEST_CASE(unknown_transports_and_addresses_are_errors) {
  auto refused = make_ucx_transport({.transports = "carrier_pigeon"});
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().what.find("carrier_pigeon") != std::string::npos);
  end lonely(over_memory);
  lonely.wire->start_epoch(epoch_id{1}, 0, token);
  BOOST_TEST(!lonely.wire->connect(1, lonely.wire->address()));
  BOOST_TEST(!lonely.wire->send(1, message(1)));
}

BOOST_AUTO_TEST_CASE(E29_a_device_that_is_not_there_is_refused_with_those_that_are) {
  prepare_environment();
  ucx_options options;
  options.transports = "tcp,self";
  options.devices = {"no-such-device"};
  const auto made = make_ucx_transport(options);
  BOOST_REQUIRE(!made);
  BOOST_TEST((made.error().code == errc::invalid_config));
  BOOST_TEST(made.error().what.find("no-such-device") != std::string::npos, made.error().what);
  BOOST_TEST(made.error().what.find("memory") != std::string::npos, made.error().what);
}

BOOST_AUTO_TEST_CASE(processes_share_memory_only_where_their_transports_let_them) {
  for (const auto* open : {"", "all", "sm,self", "tcp,posix", "rc,cma,self", "^tcp", "^ib,tcp"})
    BOOST_TEST(memory_domain(open) == host_identity(), open);
  for (const auto* closed : {"tcp", "tcp,self", "rc,self", "^sm", "^tcp,posix"}) {
    BOOST_TEST(memory_domain(closed) != host_identity(), closed);
    BOOST_TEST(memory_domain(closed) == memory_domain("tcp")); // within one process it is shared
  }
}
