// Frames that are lost, repeated, exchanged, shortened, damaged and late, and what the other end
// makes of them: nothing that is delivered is out of order, twice or damaged.

#include "transport/faults/faulty_transport.hpp"
#include "transport/loopback.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <thread>

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

constexpr epoch_token token{std::byte{42}};

fault on_message(fault_action what, std::uint64_t number) {
  fault made;
  made.name = "fault[0]";
  made.what = what;
  made.spots = {{0, 1}};
  made.when = {fault_event::message, number, {}, {}};
  made.ms = 50;
  return made;
}

struct over_loopback {
  loopback_hub hub;

  std::unique_ptr<transport::transport> make() {
    loopback_options options;
    options.digest = true;
    return std::move(*hub.make_end(options));
  }
};

struct over_ucx {
  std::unique_ptr<transport::transport> make() {
    prepare_environment();
    ucx_options options;
    options.transports = "posix,sysv,cma,self";
    options.digest = true;
    return std::move(*make_ucx_transport(options));
  }
};

using wires = boost::mpl::list<over_loopback, over_ucx>;

/// Sends eight frames of 64 KiB from a, whose wires have one fault, to b.
template <class Wires>
struct faulty_pair {
  explicit faulty_pair(const fault& one) : faults{0, {one}, compute::fault_trace{{}, 1}} {
    a = make_faulty_transport(home.make(), faults);
    b = home.make();
    b->on_frame([this](peer_key, frame&& received) {
      arrived.push_back(received.header.tag);
      for (std::size_t i = 0; i < received.payload.size(); ++i)
        whole = whole && received.payload.data()[i] == static_cast<std::byte>(received.header.tag);
      whole = whole && received.payload.size() == payload_bytes;
    });
    b->on_down([this](peer_key, const error& why) { downs.push_back(why); });
    a->start_epoch(epoch_id{1}, 0, token);
    b->start_epoch(epoch_id{1}, 1, token);
    BOOST_REQUIRE(a->connect(1, b->address()));
    BOOST_REQUIRE(b->connect(0, a->address()));
    turn([this] { return a->heard(1) && b->heard(0); });
    BOOST_REQUIRE(a->heard(1));
    for (std::uint64_t i = 1; i <= frames; ++i) {
      frame made;
      made.header.kind = first_message_kind;
      made.header.tag = i;
      auto payload = compute::buffer::allocate(payload_bytes);
      std::memset(payload->data(), static_cast<int>(i), payload_bytes);
      made.payload = std::move(*payload);
      if (!a->send(1, std::move(made)))
        ++refused;
    }
  }

  template <class Condition>
  void turn(Condition reached) {
    const auto give_up = std::chrono::steady_clock::now() + 2s;
    while (!reached() && std::chrono::steady_clock::now() < give_up)
      if (a->progress() + b->progress() == 0)
        std::this_thread::sleep_for(20us);
  }

  void settle() {
    turn([this] { return arrived.size() >= frames || !downs.empty(); });
  }

  /// The link broke at the frame after `last`, and the reason says `words`.
  void check_broken(std::size_t last, const std::string& words) {
    BOOST_TEST(arrived.size() == last);
    BOOST_REQUIRE(downs.size() == 1u);
    BOOST_TEST((downs[0].code == errc::contract_violation));
    BOOST_TEST(downs[0].what.find(words) != std::string::npos, downs[0].what);
    BOOST_TEST(whole);
  }

  static constexpr std::uint64_t frames = 8;
  static constexpr std::size_t payload_bytes = 64 << 10;
  Wires home;
  compute::fault_injector faults;
  std::unique_ptr<transport::transport> a;
  std::unique_ptr<transport::transport> b;
  std::vector<std::uint64_t> arrived;
  std::vector<error> downs;
  bool whole = true;
  int refused = 0;
};

const std::vector<std::uint64_t> all_in_order{1, 2, 3, 4, 5, 6, 7, 8};

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_a_lost_frame_breaks_the_link, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::drop, 4)};
  pair.settle();
  pair.check_broken(3, "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_a_repeated_frame_arrives_once, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::duplicate, 4)};
  pair.settle();
  BOOST_TEST(pair.arrived == all_in_order, boost::test_tools::per_element());
  BOOST_TEST(pair.whole);
  BOOST_TEST(pair.downs.empty());
  BOOST_TEST(pair.b->counters().frames_refused == 1u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_exchanged_frames_break_the_link, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::reorder, 4)};
  pair.settle();
  pair.check_broken(3, "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_a_shortened_frame_breaks_the_link, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::truncate, 4)};
  pair.settle();
  pair.check_broken(3, "");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_a_damaged_frame_breaks_the_link, Wires, wires) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    auto one = on_message(fault_action::corrupt, 4);
    one.seed = seed;
    faulty_pair<Wires> pair{one};
    pair.settle();
    pair.check_broken(3, "digest");
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(E34_a_late_frame_is_late_with_those_behind_it, Wires, wires) {
  const auto begin = std::chrono::steady_clock::now();
  faulty_pair<Wires> pair{on_message(fault_action::delay, 4)};
  pair.settle();
  BOOST_TEST(pair.arrived == all_in_order, boost::test_tools::per_element());
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 50ms));
  BOOST_TEST(pair.downs.empty());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_cut_link_takes_nothing, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::cut, 4)};
  pair.turn([] { return false; });
  BOOST_TEST(pair.arrived.size() == 3u);
  BOOST_TEST(pair.refused == 0); // Nobody tells the sender.
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_refused_send_is_told_to_the_sender, Wires, wires) {
  faulty_pair<Wires> pair{on_message(fault_action::fail_transport, 4)};
  pair.turn([&] { return pair.arrived.size() == 7; });
  BOOST_TEST(pair.refused == 1);
  BOOST_TEST(pair.arrived.size() == 7u);
}
