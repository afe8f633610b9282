// Groups of real processes: sums, and what the others see when a member stops or dies.

#include "tests/support/hex.hpp"
#include "tests/support/process.hpp"
#include "transport/collectives/endpoint_collective.hpp"
#include "transport/collectives/shared_memory_collective.hpp"
#include "transport/host_identity.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <signal.h>

#include <sstream>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
namespace wire = troupe::transport;

namespace {

constexpr wire::epoch_token token{std::byte{5}};

std::vector<float> values_of(std::size_t member, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 2654435761u + member * 40503u) % 10007) / 97.0f;
  return values;
}

std::string digest_of(std::span<const float> values) {
  return fmt::format("{:x}", wire::digest(std::as_bytes(values)));
}

std::string sum_digest(std::size_t members, std::size_t count) {
  auto sum = values_of(0, count);
  for (std::size_t m = 1; m < members; ++m) {
    const auto next = values_of(m, count);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] += next[i];
  }
  return digest_of(sum);
}

// -- the roles -----------------------------------------------------------------------------------

/// Obeys "reduce <elements> <times>" and "quit"; says "sum <digest>" or "failed <code> <what>".
int serve(parent& told, std::size_t rank, compute::collective& group, auto idle) {
  while (true) {
    const auto line = told.hear(10ms);
    idle();
    if (!line && ::getppid() == 1)
      return 1;
    if (!line)
      continue;
    if (*line == "quit")
      return 0;
    std::istringstream words(*line);
    std::string verb;
    std::size_t elements = 0;
    std::size_t times = 0;
    words >> verb >> elements >> times;
    std::vector<float> values;
    result<void> reduced;
    for (std::size_t i = 0; i < times && reduced; ++i) {
      values = values_of(rank, elements);
      reduced = group.all_reduce_sum(values);
    }
    told.say(
      reduced ? "sum " + digest_of(values)
              : fmt::format("failed {} {}", to_string(reduced.error().code), reduced.error().what));
  }
}

wire::collective_options options_of(const parent& told) {
  return {.epoch = epoch_id{4},
          .deadline = std::chrono::milliseconds(std::stol(told.arguments()[2]))};
}

const role memory_member("memory_member", [](parent& told) {
  const auto rank = std::stoul(told.arguments()[0]);
  const auto members = std::stoul(told.arguments()[1]);
  told.say("host " + wire::host_identity());
  auto segment =
    rank == 0 ? wire::shared_segment::create(wire::shared_memory_collective::segment_bytes(members))
              : wire::shared_segment::open(from_hex(told.hear(10s).value_or("")));
  if (!segment)
    return 2;
  if (rank == 0)
    told.say("segment " + to_hex(segment->describe()));
  auto group =
    wire::shared_memory_collective::make(std::move(*segment), rank, members, options_of(told));
  if (!group)
    return 3;
  told.say("ready");
  return serve(told, rank, **group, [] {});
});

const role wire_member("wire_member", [](parent& told) {
  wire::prepare_environment();
  const auto rank = std::stoul(told.arguments()[0]);
  const auto members = std::stoul(told.arguments()[1]);
  wire::ucx_options over_tcp;
  over_tcp.transports = "tcp";
  over_tcp.devices = {"lo"};
  auto wires = wire::make_ucx_transport(over_tcp);
  if (!wires)
    return 2;
  (*wires)->start_epoch(epoch_id{4}, static_cast<wire::peer_key>(rank), token);
  std::vector<wire::peer_key> keys(members);
  for (std::size_t m = 0; m < members; ++m)
    keys[m] = static_cast<wire::peer_key>(m);
  auto made = wire::endpoint_collective::make(**wires, keys, rank, options_of(told));
  auto& group = **made;
  (*wires)->on_frame(
    [&](wire::peer_key from, wire::frame&& f) { group.accept(from, std::move(f)); });
  (*wires)->on_down([&](wire::peer_key peer, const error& why) { group.member_down(peer, why); });
  told.say("address " + to_hex((*wires)->address().bytes));
  for (std::size_t m = 0; m < members; ++m) {
    const auto address = told.hear(10s);
    if (m != rank && (!address || !(*wires)->connect(keys[m], {from_hex(*address)})))
      return 3;
  }
  told.say("ready");
  return serve(told, rank, group, [&] { (*wires)->progress(); });
});

// -- the tests -----------------------------------------------------------------------------------

std::string expect(process& from, const std::string& word) {
  while (true) {
    auto line = from.hear(30s);
    BOOST_REQUIRE_MESSAGE(line, "a process ended or was silent instead of saying " << word);
    if (line->starts_with(word))
      return line->substr(std::min(line->size(), word.size() + 1));
  }
}

std::vector<process> start_members(const std::string& role_name,
                                   std::size_t members,
                                   std::chrono::milliseconds deadline) {
  std::vector<process> started;
  for (std::size_t m = 0; m < members; ++m)
    started.push_back(process::start(
      role_name, {std::to_string(m), std::to_string(members), std::to_string(deadline.count())}));
  return started;
}

std::vector<process> memory_group(std::size_t members, std::chrono::milliseconds deadline) {
  auto group = start_members("memory_member", members, deadline);
  const auto segment = expect(group[0], "segment");
  for (std::size_t m = 1; m < members; ++m)
    group[m].say(segment);
  for (auto& member : group)
    expect(member, "ready");
  return group;
}

std::vector<process> wire_group(std::size_t members, std::chrono::milliseconds deadline) {
  auto group = start_members("wire_member", members, deadline);
  std::vector<std::string> addresses;
  for (auto& member : group)
    addresses.push_back(expect(member, "address"));
  for (auto& member : group)
    for (const auto& address : addresses)
      member.say(address);
  for (auto& member : group)
    expect(member, "ready");
  return group;
}

void reduces(std::vector<process> group) {
  for (const std::size_t elements : {1, 2048, 8192, 262'144}) {
    for (auto& member : group)
      member.say(fmt::format("reduce {} 50", elements));
    for (auto& member : group)
      BOOST_TEST(expect(member, "sum") == sum_digest(group.size(), elements));
  }
  for (auto& member : group) {
    member.say("quit");
    auto ended = member.wait(10s);
    BOOST_REQUIRE(ended);
    BOOST_TEST(ended->code == 0);
  }
}

/// All but `lost` reduce; each of them says why it failed.
std::vector<std::string> failures_without(std::vector<process>& group, std::size_t lost) {
  std::vector<std::string> found;
  for (std::size_t m = 0; m < group.size(); ++m)
    if (m != lost)
      group[m].say("reduce 2048 1");
  for (std::size_t m = 0; m < group.size(); ++m)
    if (m != lost)
      found.push_back(expect(group[m], "failed"));
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(four_processes_reduce_through_shared_memory) {
  reduces(memory_group(4, 30s));
}

BOOST_AUTO_TEST_CASE(three_processes_reduce_over_tcp) {
  reduces(wire_group(3, 30s));
}

BOOST_AUTO_TEST_CASE(processes_of_one_host_have_one_identity) {
  auto child = process::start("memory_member", {"0", "1", "1000"});
  BOOST_TEST(expect(child, "host") == wire::host_identity());
}

BOOST_AUTO_TEST_CASE(a_stopped_member_is_named_and_finds_the_group_ended) {
  auto group = memory_group(3, 500ms);
  BOOST_REQUIRE(group[1].signal(SIGSTOP));
  for (const auto& why : failures_without(group, 1)) {
    BOOST_TEST(why.starts_with("timed_out"), why);
    BOOST_TEST(why.find("member 1 has not come to all_reduce 1 of epoch 4") != std::string::npos,
               why);
  }
  BOOST_REQUIRE(group[1].signal(SIGCONT));
  group[1].say("reduce 2048 1");
  BOOST_TEST(expect(group[1], "failed").starts_with("timed_out"));
}

BOOST_AUTO_TEST_CASE(a_killed_member_is_named) {
  auto group = memory_group(3, 500ms);
  BOOST_REQUIRE(group[2].signal(SIGKILL));
  BOOST_REQUIRE(group[2].wait(5s));
  for (const auto& why : failures_without(group, 2))
    BOOST_TEST(why.find("member 2 has not come") != std::string::npos, why);
}

BOOST_AUTO_TEST_CASE(a_stopped_member_over_tcp_is_named) {
  auto group = wire_group(3, 500ms);
  for (auto& member : group)
    member.say("reduce 10 1");
  for (auto& member : group)
    expect(member, "sum");
  BOOST_REQUIRE(group[1].signal(SIGSTOP));
  for (const auto& why : failures_without(group, 1)) {
    BOOST_TEST(why.starts_with("timed_out"), why);
    BOOST_TEST(why.find("member 1 has not come to all_reduce 2") != std::string::npos, why);
  }
}

BOOST_AUTO_TEST_CASE(a_killed_member_over_tcp_is_found_before_the_deadline) {
  auto group = wire_group(3, 60s);
  for (auto& member : group)
    member.say("reduce 10 1");
  for (auto& member : group)
    expect(member, "sum");
  BOOST_REQUIRE(group[2].signal(SIGKILL));
  BOOST_REQUIRE(group[2].wait(5s));
  const auto before = std::chrono::steady_clock::now();
  for (const auto& why : failures_without(group, 2)) {
    BOOST_TEST(why.starts_with("unreachable"), why);
    BOOST_TEST(why.find("member 2 of the group is down") != std::string::npos, why);
  }
  BOOST_TEST((std::chrono::steady_clock::now() - before < 20s));
}
