// `troupe up`, `node`, `status`, `stop`: a cluster from its start to its end, in good order and
// not.
#include "actors/control/security.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/raw_connection.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using std::chrono::milliseconds;
using std::chrono::seconds;
using clock_type = std::chrono::steady_clock;

namespace {

std::string two_nodes(const std::string& more = {}, const std::string& head_more = {}) {
  return "[model]\npath = \"demo\"\n[parallel]\npipeline = 2\n" + more
         + "\n[[node]]\nname = \"a\"\nthreads = 1\n" + head_more
         + "\n[[node]]\nname = \"b\"\nthreads = 1\n";
}

// Processes whose command line names this cluster's folder; the test itself does not.
std::vector<pid_t> processes_of(const cluster& used) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream in(entry.path() / "cmdline");
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    if (words.find(used.folder().path().string()) != std::string::npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

// The files in the cluster's run folder and the processes that are still there: empty after an end
// that is clean.
std::string left_by(const cluster& used) {
  std::string found;
  const auto base = used.folder() / ("troupe-" + std::to_string(::getuid()));
  if (std::filesystem::exists(base))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base))
      found += entry.path().string() + '\n';
  for (const auto pid : processes_of(used))
    found += "process " + std::to_string(pid) + '\n';
  return found;
}

bool nobody_left_within(const cluster& used, milliseconds time) {
  const auto give_up = clock_type::now() + time;
  while (!processes_of(used).empty()) {
    if (clock_type::now() > give_up)
      return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

// A connection that breaks off in its handshake; it waits 20 s for an answer.
int knock(std::uint16_t port) {
  const int made = break_off(port);
  const timeval patience{20, 0};
  BOOST_REQUIRE(::setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  return made;
}

// `troupe up`, once it serves.
test::process start_serving(const cluster& used) {
  auto up = used.start({"up", "FILE"});
  up.finish_input();
  while (true) {
    const auto line = up.hear(seconds(60));
    BOOST_REQUIRE(line);
    BOOST_TEST_MESSAGE(*line);
    if (line->starts_with("serving;"))
      return up;
  }
}

void check_ends_well(test::process& up) {
  for (const auto& line : up.hear_all(seconds(30)))
    BOOST_TEST_MESSAGE(line);
  const auto ended = up.wait(seconds(30));
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->exited);
  BOOST_TEST(ended->code == 0);
}

// Holds a port of loopback.
struct squatter {
  squatter() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    BOOST_REQUIRE(::listen(fd, 1) == 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }

  ~squatter() { ::close(fd); }

  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_cluster_from_its_start_to_its_end) {
  const cluster here(two_nodes());
  const auto before = here.run({"status", "FILE"});
  BOOST_TEST(before.code == 5);
  BOOST_TEST(before.mentions("does not run"), before.all());

  auto up = start_serving(here);
  const auto status = here.run({"status", "FILE"});
  BOOST_TEST(status.code == 0);
  BOOST_TEST(status.mentions("serving"), status.all());
  BOOST_TEST(status.mentions("rank 1  node b"), status.all());
  const auto json = here.run({"status", "FILE", "--json"});
  BOOST_TEST(json.mentions(R"("phase":"serving")"), json.all());

  const auto embedded_would_say = "rank 0 "; // On a running cluster, no start is reported.
  const auto answer =
    here.run({"generate", "FILE", "--prompt", "In the beginning", "--max-tokens", "8"});
  BOOST_TEST(answer.code == 0, answer.all());
  BOOST_TEST(!answer.mentions(embedded_would_say), answer.all());
  BOOST_TEST(answer.mentions("tokens/s"), answer.all());

  const auto without_effect =
    here.run({"generate", "FILE", "--prompt", "In", "--set", "model.context=512"});
  BOOST_TEST(without_effect.code == 2); // A09
  BOOST_TEST(without_effect.mentions("would have no effect"), without_effect.all());

  const auto second = here.run({"up", "FILE"});
  BOOST_TEST(second.code == 1);
  BOOST_TEST(second.mentions("runs already"), second.all());
  BOOST_TEST(here.run({"status", "FILE"}).code == 0); // The first is not disturbed.

  const auto stopped = here.run({"stop", "FILE"});
  BOOST_TEST(stopped.code == 0, stopped.all());
  check_ends_well(up);
  BOOST_TEST(left_by(here) == "");
  BOOST_TEST(here.run({"stop", "FILE"}).code == 5);
}

BOOST_AUTO_TEST_CASE(nodes_that_end_as_they_were_told_are_not_taken_for_lost) {
  const cluster here(two_nodes());
  for (int end = 0; end < 8; ++end) { // at any moment of the look that `up` takes at them
    auto up = start_serving(here);
    std::this_thread::sleep_for(milliseconds(60 * end));
    BOOST_TEST(here.run({"stop", "FILE"}).code == 0);
    check_ends_well(up);
  }
}

BOOST_AUTO_TEST_CASE(signals_end_it_in_good_order) {
  for (const int number : {SIGINT, SIGTERM}) {
    const cluster here(two_nodes());
    auto up = start_serving(here);
    const auto begun = clock_type::now();
    up.signal(number);
    check_ends_well(up);
    BOOST_TEST((clock_type::now() - begun < seconds(8)));
    BOOST_TEST(left_by(here) == "");
  }
}

BOOST_AUTO_TEST_CASE(E05_a_killed_parent_leaves_nobody) {
  const cluster here(two_nodes());
  auto up = start_serving(here);
  BOOST_TEST(processes_of(here).size() >= 3u); // It and its two nodes.
  up.signal(SIGKILL);
  BOOST_REQUIRE(up.wait(seconds(5)));
  BOOST_TEST(nobody_left_within(here, seconds(5)));
  BOOST_TEST(here.run({"status", "FILE"}).mentions("does not run"));
  auto again = start_serving(here); // What it left behind does not stand in the way.
  again.signal(SIGTERM);
  check_ends_well(again);
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(A21_a_node_that_cannot_start_ends_the_start_with_its_reason) {
  const cluster here(two_nodes({}, "model_path = \"/no/such/model\"\n"));
  const auto begun = clock_type::now();
  const auto ran = here.run({"up", "FILE"});
  BOOST_TEST(ran.code == 3, ran.all());
  BOOST_TEST(ran.mentions("/no/such/model"), ran.all());
  BOOST_TEST(ran.mentions("node"), ran.all());
  BOOST_TEST((clock_type::now() - begun < seconds(15))); // Not after the deadline of 60 s.
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(A13_a_taken_port_is_named_with_its_key) {
  const squatter other;
  const cluster here(two_nodes({}, "port = " + std::to_string(other.port) + "\n"));
  const auto ran = here.run({"up", "FILE"});
  BOOST_TEST(ran.code != 0);
  BOOST_TEST(ran.mentions("port = " + std::to_string(other.port)), ran.all());
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(a_node_waits_for_the_others_and_then_names_them) {
  const cluster here(two_nodes("[deadlines]\njoin_ms = 1500\n"));
  const auto begun = clock_type::now();
  const auto ran = here.run({"node", "FILE", "--name", "a"});
  BOOST_TEST(ran.code == 5, ran.all());
  BOOST_TEST(ran.mentions("b"), ran.all());
  BOOST_TEST(ran.mentions("127.0.0.1"), ran.all());
  BOOST_TEST((clock_type::now() - begun < seconds(15)));
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(nodes_started_by_hand_find_each_other_in_any_order) {
  for (const auto& order : {std::vector<std::string>{"a", "b"}, {"b", "a"}}) {
    const cluster here(two_nodes());
    auto first = here.start({"node", "FILE", "--name", order[0]});
    first.finish_input();
    std::this_thread::sleep_for(milliseconds(700));
    auto second = here.start({"node", "FILE", "--name", order[1]});
    second.finish_input();
    const auto give_up = clock_type::now() + seconds(40);
    while (!here.run({"status", "FILE"}).mentions(": serving"))
      BOOST_REQUIRE((clock_type::now() < give_up));
    BOOST_TEST(here.run({"stop", "FILE"}).code == 0);
    check_ends_well(first);
    check_ends_well(second);
    BOOST_TEST(left_by(here) == "");
  }
}

BOOST_AUTO_TEST_CASE(a_node_of_no_such_name_is_refused) {
  const cluster here(two_nodes());
  const auto ran = here.run({"node", "FILE", "--name", "c"});
  BOOST_TEST(ran.code == 2);
  BOOST_TEST(ran.mentions("its nodes are a, b"), ran.all());
}

BOOST_AUTO_TEST_CASE(a_secret_keeps_others_outside) {
  const cluster here(two_nodes("[security]\nsecret_file = \"secret\"\n"));
  const auto secret = here.folder() / "secret";
  const auto other = here.folder() / "other";
  std::ofstream(secret) << "the secret of this cluster\n";
  std::ofstream(other) << "the secret of another cluster\n";
  for (const auto& file : {secret, other})
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  auto up = start_serving(here);
  const auto answer = here.run({"generate", "FILE", "-q", "--prompt", "In", "--max-tokens", "4"});
  BOOST_TEST(answer.code == 0, answer.all());
  const auto refused =
    here.run({"status", "FILE", "--set", "security.secret_file=" + other.string()});
  BOOST_TEST(refused.code == 6, refused.all());
  BOOST_TEST(refused.mentions("secret"), refused.all());
  up.signal(SIGINT);
  check_ends_well(up);
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(E09_who_breaks_off_at_a_secured_door_is_shown_out_and_holds_up_no_end) {
  const auto port = static_cast<std::uint16_t>(find_free_port());
  const cluster here(
    two_nodes("[security]\nsecret_file = \"secret\"\n[deadlines]\nconnect_ms = 1500\n",
              "port = " + std::to_string(port) + "\n"));
  std::ofstream(here.folder() / "secret") << "the secret of this cluster\n";
  std::filesystem::permissions(here.folder() / "secret", std::filesystem::perms::owner_read);
  auto up = start_serving(here);
  const auto silent = knock(port);
  char word = 0;
  const auto begun = clock_type::now();
  BOOST_TEST(::recv(silent, &word, 1, 0) == 0, "the head did not hang up");
  BOOST_TEST((clock_type::now() - begun > milliseconds(1000)));
  ::close(silent);
  const auto answer = here.run({"generate", "FILE", "-q", "--prompt", "In", "--max-tokens", "4"});
  BOOST_TEST(answer.code == 0, answer.all()); // Members stay, also those who have nothing to say.
  const auto another = knock(port);
  up.signal(SIGINT);
  check_ends_well(up);
  ::close(another);
  BOOST_TEST(left_by(here) == "");
}

BOOST_AUTO_TEST_CASE(certificates_of_another_authority_stay_outside) {
  const cluster here(two_nodes("[security]\ncertificate = \"a.crt\"\nkey = \"a.key\"\n"
                               "authority = \"a.crt\"\n"));
  for (const std::string name : {"a", "b"}) { // Each its own authority.
    const auto made = actors::derive_identity("the secret of cluster " + name);
    BOOST_REQUIRE(made);
    std::ofstream(here.folder() / (name + ".crt")) << made->certificate;
    std::ofstream(here.folder() / (name + ".key")) << made->key;
    std::filesystem::permissions(here.folder() / (name + ".key"),
                                 std::filesystem::perms::owner_read);
  }
  auto up = start_serving(here);
  BOOST_TEST(here.run({"status", "FILE"}).code == 0);
  std::vector<std::string> foreign{"status", "FILE"};
  for (const auto& [key, file] :
       {std::pair{"certificate", "b.crt"}, {"key", "b.key"}, {"authority", "b.crt"}}) {
    foreign.push_back("--set");
    foreign.push_back("security." + std::string(key) + "=" + (here.folder() / file).string());
  }
  const auto refused = here.run(foreign);
  BOOST_TEST(refused.code == 6, refused.all());
  BOOST_TEST(refused.mentions("certificates of this cluster file"), refused.all());
  BOOST_TEST(here.run({"status", "FILE"}).code == 0);
  up.signal(SIGINT);
  check_ends_well(up);
}

BOOST_AUTO_TEST_CASE(E37_a_node_that_died_does_not_keep_the_others_from_ending) {
  const cluster here(two_nodes("[recovery]\nrestarts = 0\n"));
  auto up = start_serving(here);
  pid_t victim = 0;
  for (const auto pid : processes_of(here)) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
    const std::string words{std::istreambuf_iterator<char>(in), {}};
    if (words.find(std::string("--name\0b", 8)) != std::string::npos)
      victim = pid;
  }
  BOOST_REQUIRE(victim > 0);
  ::kill(victim, SIGKILL);
  const auto ended = up.wait(seconds(40));
  BOOST_REQUIRE(ended);
  BOOST_TEST(ended->code == 5); // Its end is told, not hidden.
  BOOST_TEST(left_by(here) == "");
}
