// UCX between real processes: what arrives, and what a survivor sees when its peer dies.

#include "tests/support/hex.hpp"
#include "tests/support/process.hpp"
#include "transport/ucx/segment_folder.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
namespace wire = troupe::transport;

namespace {

constexpr const char* over_memory = "posix,sysv,cma,self";
constexpr const char* over_tcp = "tcp";
constexpr wire::epoch_token token{std::byte{1}, std::byte{2}, std::byte{3}};

// -- the role: one end that does what its lines say ----------------------------------------------

compute::buffer payload_of(std::size_t bytes, std::uint64_t seed) {
  auto made = compute::buffer::allocate(bytes);
  check(made.has_value(), "a test has memory for its payload");
  std::mt19937_64 random(seed);
  std::size_t i = 0;
  for (; i + 8 <= bytes; i += 8)
    *reinterpret_cast<std::uint64_t*>(made->data() + i) = random();
  for (; i < bytes; ++i)
    made->data()[i] = static_cast<std::byte>(random());
  return *made;
}

std::uint64_t digest_of(const compute::buffer& content) {
  return wire::digest({content.data(), content.size()});
}

/// Kilobytes of the line `name` of /proc/self/status.
std::size_t memory_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name))
      return std::stoul(line.substr(name.size() + 1));
  return 0;
}

class end_role {
public:
  explicit end_role(parent& told) : told_(told) { make(); }

  int run() {
    while (true) {
      wires_->progress();
      const auto line = told_.hear(busy_ ? 0ms : 1ms);
      if (line && *line == "quit")
        return quit();
      if (line)
        obey(*line);
      send_more();
      if (::getppid() == 1)
        return 1;
    }
  }

private:
  void make() {
    wires_.reset();
    wire::ucx_options options;
    options.transports = told_.arguments()[0];
    options.devices =
      options.transports == over_tcp ? std::vector<std::string>{"lo"} : std::vector<std::string>{};
    options.queued_bytes_limit = 96 << 20;
    auto made = wire::make_ucx_transport(options);
    check(made.has_value(), "UCX starts");
    wires_ = std::move(*made);
    wires_->start_epoch(epoch_id{1}, self(), token);
    wires_->on_frame([this](wire::peer_key, wire::frame&& received) {
      told_.say(fmt::format("got {} {} {:x}",
                            received.header.tag,
                            received.payload.size(),
                            digest_of(received.payload)));
    });
    wires_->on_down([this](wire::peer_key peer, const error& why) {
      flood_ = 0;
      told_.say(fmt::format("down {} {} {}", peer, to_string(why.code), why.what));
    });
    told_.say("address " + to_hex(wires_->address().bytes));
  }

  wire::peer_key self() const {
    return static_cast<wire::peer_key>(std::stoul(told_.arguments()[1]));
  }

  void obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "connect") {
      std::string address;
      words >> peer_ >> address;
      auto linked = wires_->connect(peer_, {from_hex(address)});
      told_.say(linked ? "connecting" : "refused " + linked.error().what);
      const auto give_up = std::chrono::steady_clock::now() + 10s;
      while (!wires_->heard(peer_) && std::chrono::steady_clock::now() < give_up)
        wires_->progress();
      auto link = wires_->link(peer_);
      told_.say("linked " + (link ? link->transports : link.error().what));
    } else if (verb == "send") {
      std::size_t bytes = 0;
      words >> bytes;
      pending_.push_back(payload_of(bytes, ++seed_));
    } else if (verb == "flood") { // The same payload again and again, until told otherwise.
      std::size_t bytes = 0;
      words >> bytes >> flood_;
      flooded_ = payload_of(bytes, 1);
    } else if (verb == "hold") { // No progress for a while, as in a long computation.
      std::this_thread::sleep_for(1s);
    } else if (verb == "renew") {
      make();
    } else if (verb == "memory") {
      told_.say(fmt::format("memory {} {}", memory_status("VmRSS:"), memory_status("VmHWM:")));
    }
  }

  void send_more() {
    busy_ = !pending_.empty() || flood_ > 0;
    if (flood_ > 0 && pending_.empty() && post(flooded_))
      --flood_;
    while (!pending_.empty() && post(pending_.front()))
      pending_.erase(pending_.begin());
  }

  bool post(const compute::buffer& payload) {
    wire::frame leaving;
    leaving.header.kind = wire::first_message_kind;
    leaving.header.tag = tag_;
    leaving.payload = payload;
    if (!wires_->send(peer_, std::move(leaving)))
      return false;
    if (flood_ == 0)
      told_.say(fmt::format("sent {} {} {:x}", tag_, payload.size(), digest_of(payload)));
    ++tag_;
    return true;
  }

  int quit() {
    auto closed = wires_->close(3s);
    told_.say(closed ? "closed" : "closed late");
    return 0;
  }

  parent& told_;
  std::unique_ptr<wire::transport> wires_;
  wire::peer_key peer_ = 0;
  std::vector<compute::buffer> pending_;
  compute::buffer flooded_;
  std::size_t flood_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t tag_ = 1;
  bool busy_ = false;
};

const role end("ucx_end", [](parent& told) {
  wire::prepare_environment();
  return end_role(told).run();
});

/// Opens wires, and leaves what UCX leaves where it is killed between making and unnaming a
/// segment.
const role segment_owner("segment_owner", [](parent& told) {
  wire::prepare_environment();
  const auto wires = wire::make_ucx_transport({over_memory});
  std::ofstream{wire::segment_folder() / "ucx_shm_posix_1"} << "a segment";
  told.say("folder " + wire::segment_folder().string());
  told.hear(20s);
  return wires ? 0 : 1;
});

// -- what the tests see of it --------------------------------------------------------------------

/// The next line that starts with `word`, without it.
std::string
expect(process& from, const std::string& word, std::chrono::milliseconds deadline = 20s) {
  const auto give_up = std::chrono::steady_clock::now() + deadline;
  while (std::chrono::steady_clock::now() < give_up) {
    auto line = from.hear(deadline);
    if (line && line->starts_with(word + " "))
      return line->substr(word.size() + 1);
    if (line && *line == word)
      return {};
    BOOST_REQUIRE_MESSAGE(line, "a process ended or was silent instead of saying " << word);
  }
  BOOST_FAIL("no line " << word);
  return {};
}

process start_end(const std::string& transports, int key) {
  return process::start("ucx_end", {transports, std::to_string(key)});
}

/// Links two ends that have just told their addresses; what wires `a` has.
std::string link(process& a, int a_key, process& b, int b_key) {
  const auto a_address = expect(a, "address");
  const auto b_address = expect(b, "address");
  a.say(fmt::format("connect {} {}", b_key, b_address));
  b.say(fmt::format("connect {} {}", a_key, a_address));
  expect(b, "linked");
  return expect(a, "linked");
}

void quit(process& end_process) {
  end_process.say("quit");
  auto ended = end_process.wait(10s);
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->exited);
  BOOST_TEST(ended->code == 0);
}

void sizes_arrive(const std::string& transports, const std::string& chosen) {
  auto a = start_end(transports, 0);
  auto b = start_end(transports, 1);
  const auto found = link(a, 0, b, 1);
  BOOST_TEST(found.find(chosen) != std::string::npos, found);
  BOOST_TEST((chosen == "tcp/lo" || found.find("tcp") == std::string::npos), found);
  const std::vector<std::size_t> sizes{0,
                                       64 << 20,
                                       1,
                                       100,
                                       8 << 10,
                                       16 << 20,
                                       0,
                                       1 << 20,
                                       (64 << 10) - 1,
                                       1,
                                       64 << 10,
                                       64 << 20,
                                       100,
                                       8 << 10,
                                       16 << 20};
  for (const auto size : sizes)
    a.say("send " + std::to_string(size));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto sent = expect(a, "sent", 40s);
    BOOST_TEST(sent.starts_with(fmt::format("{} {} ", i + 1, sizes[i])));
    BOOST_TEST(expect(b, "got", 40s) == sent);
  }
  quit(a);
  quit(b);
}

std::size_t entries_of(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

/// System V segments that a process made which is gone.
std::size_t orphaned_segments(const std::vector<pid_t>& makers) {
  std::ifstream table("/proc/sysvipc/shm");
  std::size_t count = 0;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    long long key = 0, id = 0, mode = 0, size = 0, maker = 0;
    fields >> key >> id >> mode >> size >> maker;
    for (const auto pid : makers)
      count += maker == pid ? 1 : 0;
  }
  return count;
}

/// To UCX's check of a peer behind shared memory a process lives until its parent has reaped it.
void kill_and_reap(process& victim) {
  BOOST_REQUIRE(victim.signal(SIGKILL));
  BOOST_REQUIRE(victim.wait(5s));
}

void survives_the_death_of_its_receiver(const std::string& transports) {
  const auto before = entries_of("/dev/shm");
  auto survivor = start_end(transports, 0);
  auto victim = start_end(transports, 1);
  link(survivor, 0, victim, 1);
  survivor.say(fmt::format("flood {} 1000", 64 << 20));
  expect(victim, "got"); // From here on one message or another is under way all the time.
  std::this_thread::sleep_for(10ms);
  const auto victim_pid = victim.pid();
  kill_and_reap(victim);
  const auto why = expect(survivor, "down", 30s);
  BOOST_TEST(why.starts_with("1 unreachable"), why);
  // The rule after such a death: a new worker; it reaches a third process.
  survivor.say("renew");
  auto third = start_end(transports, 2);
  link(survivor, 0, third, 2);
  survivor.say("send 1000000");
  const auto sent = expect(survivor, "sent");
  BOOST_TEST(expect(third, "got") == sent);
  third.say("send 70000");
  BOOST_TEST(expect(survivor, "got") == expect(third, "sent"));
  quit(survivor);
  quit(third);
  BOOST_TEST(entries_of("/dev/shm") == before);
  BOOST_TEST(orphaned_segments({victim_pid}) == 0u);
}

void survives_the_death_of_its_sender(const std::string& transports) {
  auto survivor = start_end(transports, 0);
  auto victim = start_end(transports, 1);
  link(survivor, 0, victim, 1);
  victim.say(fmt::format("flood {} 1000", 64 << 20));
  expect(survivor, "got");
  std::this_thread::sleep_for(10ms);
  kill_and_reap(victim);
  const auto why = expect(survivor, "down", 30s);
  BOOST_TEST(why.starts_with("1 unreachable"), why);
  survivor.say("renew");
  auto third = start_end(transports, 2);
  link(survivor, 0, third, 2);
  third.say("send 1000000");
  const auto sent = expect(third, "sent");
  BOOST_TEST(expect(survivor, "got") == sent);
  quit(survivor);
  quit(third);
}

} // namespace

BOOST_AUTO_TEST_CASE(E17_sizes_arrive_intact_and_in_order_over_shared_memory) {
  sizes_arrive(over_memory, "/memory");
}

BOOST_AUTO_TEST_CASE(E17_sizes_arrive_intact_and_in_order_over_tcp) {
  sizes_arrive(over_tcp, "tcp/lo");
}

BOOST_AUTO_TEST_CASE(E31_without_cross_memory_attach_messages_fall_back) {
  sizes_arrive("posix,self", "posix/memory");
}

BOOST_AUTO_TEST_CASE(E27_killed_receiver_of_64_MiB_over_tcp) {
  survives_the_death_of_its_receiver(over_tcp);
}

BOOST_AUTO_TEST_CASE(E27_killed_receiver_of_64_MiB_over_shared_memory) {
  survives_the_death_of_its_receiver(over_memory);
}

BOOST_AUTO_TEST_CASE(E27_killed_sender_of_64_MiB_over_tcp) {
  survives_the_death_of_its_sender(over_tcp);
}

BOOST_AUTO_TEST_CASE(E27_killed_sender_of_64_MiB_over_shared_memory) {
  survives_the_death_of_its_sender(over_memory);
}

BOOST_AUTO_TEST_CASE(large_messages_wait_at_their_sender_and_memory_stays_bounded) {
  for (const auto* transports : {over_memory, over_tcp}) {
    auto a = start_end(transports, 0);
    auto b = start_end(transports, 1);
    link(a, 0, b, 1);
    b.say("memory");
    std::size_t before = 0;
    std::istringstream(expect(b, "memory")) >> before;
    a.say(fmt::format("flood {} 6", 64 << 20));
    b.say("hold");
    for (int i = 0; i < 6; ++i)
      expect(b, "got", 40s);
    b.say("memory");
    std::size_t after = 0;
    std::size_t peak = 0;
    std::istringstream(expect(b, "memory")) >> after >> peak;
    BOOST_TEST_MESSAGE(transports << ": " << before << " kB, peak " << peak << " kB");
    BOOST_TEST(peak < before + (200 << 10)); // Of 384 MiB that passed through.
    quit(a);
    quit(b);
  }
}

BOOST_AUTO_TEST_CASE(a_stopped_peer_costs_a_bounded_queue_and_nothing_is_lost) {
  for (const auto* transports : {over_memory, over_tcp}) {
    auto a = start_end(transports, 0);
    auto b = start_end(transports, 1);
    link(a, 0, b, 1);
    BOOST_REQUIRE(b.signal(SIGSTOP));
    a.say(fmt::format("flood {} 1000", 256 << 10)); // 250 MiB where 96 may be queued.
    std::this_thread::sleep_for(500ms);
    a.say("memory");
    std::size_t now = 0;
    std::size_t peak = 0;
    std::istringstream(expect(a, "memory")) >> now >> peak;
    BOOST_TEST(peak < std::size_t{250} << 10);
    BOOST_REQUIRE(b.signal(SIGCONT));
    for (std::uint64_t tag = 1; tag <= 1000; ++tag)
      BOOST_REQUIRE(expect(b, "got", 40s).starts_with(std::to_string(tag) + " "));
    quit(a);
    quit(b);
  }
}

BOOST_AUTO_TEST_CASE(segments_that_a_killed_process_left_are_removed_by_the_next_one) {
  const auto is_there = [](const std::string& folder) { return std::filesystem::exists(folder); };
  auto killed = process::start("segment_owner");
  auto lives = process::start("segment_owner");
  const auto left = expect(killed, "folder");
  const auto used = expect(lives, "folder");
  BOOST_REQUIRE((is_there(left) && is_there(used) && left != used));
  killed.signal(SIGKILL);
  killed.wait(5s);
  BOOST_TEST(is_there(left + "/ucx_shm_posix_1"));
  auto next = process::start("segment_owner");
  const auto newest = expect(next, "folder");
  BOOST_TEST(!is_there(left));
  BOOST_TEST(is_there(used + "/ucx_shm_posix_1"));
  next.say("end");
  const auto ended = next.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
  BOOST_TEST(!is_there(newest));
}
