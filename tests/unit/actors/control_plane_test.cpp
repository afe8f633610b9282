#include "actors/control/system.hpp"
#include "actors/host/host_network.hpp"
#include "tests/support/process.hpp"
#include "tests/support/raw_connection.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <csignal>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace troupe;
using namespace troupe::actors;
using std::chrono::milliseconds;
using tests::connect_raw;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr milliseconds patience{20'000};

// Of one node; `secret_file` may be "-".
cluster_settings settings_with(const std::string& secret_file,
                               const std::string& bind = "127.0.0.1") {
  cluster_settings made;
  made.file = "cluster.toml";
  node_settings node;
  node.name = "a";
  node.bind = node.advertise = bind;
  made.nodes.push_back(node);
  made.cluster.head = "a";
  if (secret_file != "-")
    made.security.secret_file = secret_file;
  return made;
}

gateway_actor::behavior_type quiet_gateway(gateway_actor::pointer) {
  return {
    [](node_hello&, node_actor&) { return node_welcome{}; },
    [](generate_request&, caf::strong_actor_ptr&) { return request_id{7}; },
    [](stream_attach& which, caf::strong_actor_ptr&) { return which.request; },
    [](request_cancel&) {},
    [](terms_query) { return cluster_terms{}; },
    [](status_query) {
      cluster_status made;
      made.cluster = "behind the door";
      return made;
    },
    [](node_drain&) {},
    [](fault_order&) { return fault_receipt{}; },
    [](trace_order&) { return trace_report{}; },
    [](cluster_stop&) {},
  };
}

// A head with its door open, until it is told to end.
const test::role door("door", [](test::parent& p) {
  auto plane = control_plane::start(settings_with(p.arguments().at(0)));
  if (!plane) {
    p.say(plane.error().what);
    return 1;
  }
  const auto gateway = (*plane)->system().spawn(quiet_gateway);
  const auto port = (*plane)->publish(gateway, 0);
  p.say(port ? std::to_string(*port) : port.error().what);
  p.hear(milliseconds(60'000));
  (*plane)->unpublish(gateway, *port);
  caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
  return 0;
});

// A guest who stays: says "there" for each line that it hears, as long as the door answers.
const test::role guest("guest", [](test::parent& p) {
  auto plane = control_plane::start(settings_with(p.arguments().at(0)));
  if (!plane)
    return 1;
  const auto port = static_cast<std::uint16_t>(std::stoi(p.arguments().at(1)));
  const auto found = (*plane)->connect("127.0.0.1", port, milliseconds(5000));
  p.say(found ? "inside" : found.error().what);
  if (!found)
    return 1;
  caf::scoped_actor self{(*plane)->system()};
  self->monitor(*found);
  while (p.hear(milliseconds(60'000))) {
    bool gone = false;
    self->request(*found, milliseconds(2000), status_query{})
      .receive([](cluster_status&) {}, [&](caf::error&) { gone = true; });
    p.say(gone ? "outside" : "there");
  }
  return 0;
});

struct secrets {
  secrets() {
    std::ofstream(good) << "the secret of this cluster\n";
    std::ofstream(other) << "the secret of another cluster\n";
  }

  // Starts a door; its port.
  std::uint16_t open(const std::string& secret_file) {
    head.emplace(test::process::start("door", {secret_file}));
    const auto line = head->hear(patience);
    BOOST_REQUIRE(line);
    BOOST_TEST_MESSAGE(*line);
    return static_cast<std::uint16_t>(std::stoi(*line));
  }

  void close() {
    head->say("end");
    const auto ended = head->wait(patience);
    BOOST_REQUIRE(ended);
    BOOST_TEST(ended->exited);
    BOOST_TEST(ended->code == 0);
  }

  // What a client with this secret gets: the cluster's name, or an error.
  result<std::string> ask(std::uint16_t port, const std::string& secret_file) {
    auto plane = control_plane::start(settings_with(secret_file));
    if (!plane)
      return plane.error();
    const auto found = (*plane)->connect("127.0.0.1", port, milliseconds(5000));
    if (!found)
      return found.error();
    caf::scoped_actor self{(*plane)->system()};
    result<std::string> heard = error{errc::timed_out, "no answer"};
    self->request(*found, milliseconds(5000), status_query{})
      .receive([&](cluster_status& status) { heard = status.cluster; },
               [&](caf::error& why) { heard = from_caf((*plane)->system(), why); });
    return heard;
  }

  void check_refused(std::uint16_t port, const std::string& secret_file) {
    const auto begun = clock_type::now();
    const auto answer = ask(port, secret_file);
    BOOST_REQUIRE(!answer);
    BOOST_TEST_MESSAGE(answer.error().what);
    BOOST_TEST(to_string(answer.error().code) == to_string(errc::unauthorised));
    BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(4)));
  }

  tests::temporary_folder folder;
  std::string good = folder / "good";
  std::string other = folder / "other";
  std::optional<test::process> head;
};

// A socket that listens and does what a test says with who comes.
struct raw_listener {
  raw_listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    BOOST_REQUIRE(::listen(fd, 16) == 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }

  ~raw_listener() { ::close(fd); }

  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(control_planes, secrets)

BOOST_AUTO_TEST_CASE(without_a_secret_the_door_opens_on_loopback) {
  const auto port = open("-");
  const auto answer = ask(port, "-");
  BOOST_REQUIRE(answer);
  BOOST_TEST(*answer == "behind the door");
  close();
}

BOOST_AUTO_TEST_CASE(the_same_secret_opens_the_door) {
  const auto port = open(good);
  const auto answer = ask(port, good);
  BOOST_REQUIRE(answer);
  BOOST_TEST(*answer == "behind the door");
  close();
}

BOOST_AUTO_TEST_CASE(others_stay_outside_and_the_door_stays_open) {
  const auto port = open(good);
  check_refused(port, other); // Another secret.
  check_refused(port, "-");   // No secret: plain TCP to a door that speaks TLS.
  const auto answer = ask(port, good);
  BOOST_REQUIRE(answer);
  close();
}

BOOST_AUTO_TEST_CASE(a_secret_does_not_fit_a_door_without_one) {
  const auto port = open("-");
  check_refused(port, good);
  BOOST_TEST(!!ask(port, "-"));
  close();
}

BOOST_AUTO_TEST_CASE(E09_knocking_does_no_harm) {
  for (const auto& secret : {std::string("-"), good}) {
    const auto port = open(secret);
    for (int i = 0; i < 300; ++i)
      ::close(connect_raw(port));
    for (int i = 0; i < 100; ++i) {
      const int fd = connect_raw(port);
      BOOST_TEST(::send(fd, "x", 1, MSG_NOSIGNAL) == 1);
      const linger reset{1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      ::close(fd);
    }
    const std::string noise(100'000, '\xee');
    for (int i = 0; i < 20; ++i) {
      const int fd = connect_raw(port);
      ::send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
      ::close(fd);
    }
    BOOST_TEST(!!ask(port, secret));
    close();
  }
}

BOOST_AUTO_TEST_CASE(E09_what_others_do_at_the_door_does_not_touch_who_is_inside) {
  const auto port = open(good);
  auto stays = test::process::start("guest", {good, std::to_string(port)});
  BOOST_REQUIRE(stays.hear(patience) == "inside");
  const auto check_inside = [&](const std::string& after) {
    for (int i = 0; i < 5; ++i) {
      stays.say("still there?");
      BOOST_TEST((stays.hear(patience) == "there"), after);
    }
  };
  check_inside("coming in");
  {
    auto leaves = test::process::start("guest", {good, std::to_string(port)});
    BOOST_REQUIRE(leaves.hear(patience) == "inside");
    leaves.signal(SIGKILL);
    leaves.wait(patience);
  }
  check_inside("another guest was killed");
  BOOST_TEST(!!ask(port, good));
  check_inside("another guest left");
  check_refused(port, other);
  check_inside("another secret was refused");
  check_refused(port, "-");
  check_inside("plain TCP was refused");
  for (const std::string noise : {"", "x", "GET / HTTP/1.1\r\n\r\n"}) {
    const int fd = connect_raw(port);
    ::send(fd, noise.data(), noise.size(), MSG_NOSIGNAL);
    const linger reset{1, noise.size() == 1 ? 0 : 1};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::close(fd);
    std::this_thread::sleep_for(milliseconds(50));
    check_inside("noise: " + noise);
  }
  close();
}

BOOST_AUTO_TEST_CASE(E09_a_guest_who_says_nothing_does_not_block_the_door) {
  for (const auto& secret : {std::string("-"), good}) {
    const auto port = open(secret);
    std::vector<int> silent;
    for (int i = 0; i < 5; ++i)
      silent.push_back(connect_raw(port));
    BOOST_TEST(!!ask(port, secret));
    for (const int fd : silent)
      ::close(fd);
    close();
  }
}

BOOST_AUTO_TEST_CASE(E09_a_guest_who_breaks_off_does_not_hold_up_the_end) {
  const auto port = open(good);
  const int silent = tests::break_off(port);
  std::this_thread::sleep_for(milliseconds(200));
  const auto begun = clock_type::now();
  close();
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(10)));
  ::close(silent);
}

BOOST_AUTO_TEST_CASE(a_mute_listener_does_not_hold_a_secured_client) {
  const raw_listener mute;
  const auto begun = clock_type::now();
  {
    auto plane = control_plane::start(settings_with(good));
    BOOST_REQUIRE(plane);
    const auto found = (*plane)->connect("127.0.0.1", mute.port, milliseconds(700));
    BOOST_REQUIRE(!found);
    BOOST_TEST_MESSAGE(found.error().what);
    BOOST_TEST(to_string(found.error().code) == to_string(errc::timed_out));
  }
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(3)));
}

BOOST_AUTO_TEST_CASE(nobody_there_is_said_at_once) {
  std::uint16_t free_port = 0;
  {
    const raw_listener here;
    free_port = here.port;
  }
  auto plane = control_plane::start(settings_with("-"));
  BOOST_REQUIRE(plane);
  const auto found = (*plane)->connect("127.0.0.1", free_port, milliseconds(5000));
  BOOST_REQUIRE(!found);
  BOOST_TEST(to_string(found.error().code) == to_string(errc::unreachable));
  BOOST_TEST(found.error().what
             == "127.0.0.1:" + std::to_string(free_port) + ": Connection refused");
}

BOOST_AUTO_TEST_CASE(somebody_who_never_answers_costs_no_more_than_the_deadline) {
  const raw_listener mute;
  auto plane = control_plane::start(settings_with("-"));
  BOOST_REQUIRE(plane);
  const auto begun = clock_type::now();
  const auto found = (*plane)->connect("127.0.0.1", mute.port, milliseconds(700));
  BOOST_REQUIRE(!found);
  BOOST_TEST(to_string(found.error().code) == to_string(errc::timed_out));
  BOOST_TEST((clock_type::now() - begun < std::chrono::seconds(3)));
}

BOOST_AUTO_TEST_CASE(A13_a_taken_port_is_named_with_its_key) {
  const raw_listener squatter;
  auto settings = settings_with("-");
  settings.nodes[0].port = squatter.port;
  auto plane = control_plane::start(settings);
  BOOST_REQUIRE(plane);
  const auto gateway = (*plane)->system().spawn(quiet_gateway);
  const auto port = (*plane)->publish(gateway, 0);
  BOOST_REQUIRE(!port);
  BOOST_TEST_MESSAGE(port.error().what);
  BOOST_TEST(to_string(port.error().code) == to_string(errc::invalid_config));
  BOOST_TEST(port.error().what.find("Address already in use") != std::string::npos);
  caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_CASE(beyond_loopback_without_a_secret_no_door_opens) {
  auto plane = control_plane::start(settings_with("-", "0.0.0.0"));
  BOOST_REQUIRE(plane);
  const auto gateway = (*plane)->system().spawn(quiet_gateway);
  const auto port = (*plane)->publish(gateway, 0);
  BOOST_REQUIRE(!port);
  BOOST_TEST(to_string(port.error().code) == to_string(errc::unauthorised));
  caf::anon_send_exit(gateway, caf::exit_reason::user_shutdown);
}

BOOST_AUTO_TEST_CASE(our_errors_survive_the_framework) {
  auto plane = control_plane::start(settings_with("-"));
  BOOST_REQUIRE(plane);
  auto& system = (*plane)->system();
  for (int code = 0; code <= static_cast<int>(errc::unsupported); ++code) {
    const auto back = from_caf(system, to_caf({static_cast<errc>(code), "the queue is full"}));
    BOOST_TEST(static_cast<int>(back.code) == code);
    BOOST_TEST(back.what == "the queue is full");
  }
  BOOST_TEST(to_string(from_caf(system, caf::sec::request_timeout).code) == "timed_out");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(addresses_of_this_host_are_known) {
  BOOST_TEST(belongs_to_this_host("127.0.0.1"));
  BOOST_TEST(belongs_to_this_host("127.0.0.3"));
  BOOST_TEST(belongs_to_this_host("::1"));
  BOOST_TEST(belongs_to_this_host("localhost"));
  BOOST_TEST(!belongs_to_this_host("192.0.2.1")); // RFC 5737: nobody's.
  BOOST_TEST(!belongs_to_this_host("no-such-host.invalid"));
  for (const auto& address : addresses_of_this_host())
    BOOST_TEST(belongs_to_this_host(address), address);
}

BOOST_AUTO_TEST_CASE(E43_a_connection_to_itself_is_nobody) {
  // Ports of the ephemeral range on which nobody listens: some of these connects meet themselves.
  for (int i = 0; i < 2000; ++i) {
    const auto there =
      reach("127.0.0.1", static_cast<std::uint16_t>(40'001 + i % 20), milliseconds(1000));
    BOOST_REQUIRE(!there);
  }
}

BOOST_AUTO_TEST_CASE(a_port_that_cannot_be_bound_is_said_in_words) {
  const raw_listener taken;
  const auto bound = try_bind("127.0.0.1", taken.port);
  BOOST_REQUIRE(!bound);
  BOOST_TEST(bound.error().what.find("Address already in use") != std::string::npos);
  BOOST_TEST(!!try_bind("127.0.0.1", 0));
  BOOST_TEST(!try_bind("192.0.2.1", 0));
}
