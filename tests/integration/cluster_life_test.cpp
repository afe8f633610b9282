// How a cluster starts, serves, loses a node and ends: real processes, real signals.

#include "tests/support/cluster_commands.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

const served_model& other_weights() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 4;
    wanted.seed = 2;
    return wanted;
  }()};
  return model;
}

cluster_shape two_nodes() {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 2;
  return shape;
}

std::string text_of(test::process& child, std::chrono::milliseconds patience) {
  std::string text;
  for (const auto& line : child.hear_all(patience))
    text += line + "\n";
  return text;
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// Processor time of a process and its threads, in clock ticks.
long cpu_ticks(pid_t pid) {
  std::ifstream stat{"/proc/" + std::to_string(pid) + "/stat"};
  std::string word;
  long user = 0;
  long system = 0;
  for (int field = 1; field <= 13; ++field)
    stat >> word;
  stat >> user >> system;
  return user + system;
}

const std::string one_request = token_prompt({1, 2, 3, 4, 5}, 12);

} // namespace

BOOST_AUTO_TEST_CASE(A11_a_lost_node_is_said_and_its_return_is_enough) {
  const cluster two{two_nodes()};
  auto head = start_node(two, "n0");
  auto tail = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  const auto before = two.generate({one_request});
  tail.signal(SIGKILL);
  tail.wait(5s);
  BOOST_TEST(status_becomes(two, "waiting for node 'n1'", 5s));
  const auto refused = two.try_generate({one_request}, {}, 20);
  BOOST_TEST(refused.code != 0);
  BOOST_TEST(refused.mentions("n1"));
  auto again = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  const auto after = two.generate({one_request});
  BOOST_TEST(before[0].digests == after[0].digests, boost::test_tools::per_element());
  head.signal(SIGTERM);
  const auto ended = head.wait(20s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
  const auto other = again.wait(10s);
  BOOST_TEST((other && other->exited && other->code == 0));
}

BOOST_AUTO_TEST_CASE(the_first_epoch_serves_whoever_hears_of_it_first) {
  auto shape = two_nodes();
  shape.tensor = 2;
  const cluster four{shape};
  for (int start = 0; start < 12; ++start) {
    const crew nodes{four, 4};
    BOOST_TEST(nodes.epoch() == 1u, "start " << start);
  }
}

BOOST_AUTO_TEST_CASE(A11_a_tensor_group_meets_again_after_a_member_was_lost) {
  auto shape = two_nodes();
  shape.pipeline = 2;
  shape.tensor = 2;
  const cluster four{shape};
  auto head = start_node(four, "n0");
  auto second = start_node(four, "n1");
  auto third = start_node(four, "n2");
  auto fourth = start_node(four, "n3");
  BOOST_REQUIRE(status_becomes(four, serving, 20s));
  const auto before = four.generate({one_request});
  for (auto* lost : {&second, &fourth, &second}) {
    const auto* name = lost == &second ? "n1" : "n3";
    lost->signal(SIGKILL);
    lost->wait(5s);
    BOOST_REQUIRE(status_becomes(four, std::string{"waiting for node '"} + name, 5s));
    *lost = start_node(four, name);
    BOOST_REQUIRE(status_becomes(four, serving, 20s));
    const auto after = four.generate({one_request});
    BOOST_TEST(before[0].digests == after[0].digests, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(E01_running_requests_go_on_with_the_same_tokens_after_a_node_was_lost) {
  auto shape = two_nodes();
  shape.pipeline = 3;
  const cluster three{shape};
  std::vector<std::string> lines;
  for (unsigned i = 0; i < 4; ++i)
    lines.push_back(token_prompt(random_tokens(5 + 30 * i, 2048, i), 1800));
  const auto expected = three.generate(lines);
  auto head = start_node(three, "n0");
  auto middle = start_node(three, "n1");
  auto tail = start_node(three, "n2");
  BOOST_REQUIRE(status_becomes(three, serving, 20s));
  std::vector<told_answer> found;
  std::thread client{[&] {
    const auto ran = three.try_generate(lines, {}, 60);
    found = read_answers(ran.lines);
  }};
  for (auto* lost : {&middle, &tail}) {
    const auto* name = lost == &middle ? "n1" : "n2";
    BOOST_TEST(status_becomes(three, "\"running\":4", 10s));
    lost->signal(SIGKILL);
    lost->wait(5s);
    *lost = start_node(three, name);
    BOOST_TEST(status_becomes(three, serving, 20s));
  }
  client.join();
  BOOST_REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].finish == "length");
    BOOST_TEST(found[i].digests == expected[i].digests, boost::test_tools::per_element());
    BOOST_TEST(found[i].text == expected[i].text);
  }
}

BOOST_AUTO_TEST_CASE(E25_a_frozen_node_is_given_up_and_ends_when_it_wakes) {
  auto shape = two_nodes();
  shape.more = "[deadlines]\nprogress_ms = 300\n";
  const cluster two{shape};
  auto head = start_node(two, "n0");
  auto frozen = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  const auto before = two.generate({one_request});
  frozen.signal(SIGSTOP);
  BOOST_TEST(status_becomes(two, "it is frozen or cut off", 10s));
  auto fresh = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  frozen.signal(SIGCONT);
  const auto ended = frozen.wait(10s);
  BOOST_TEST((ended && ended->exited));
  const auto after = two.generate({one_request});
  BOOST_TEST(before[0].digests == after[0].digests, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(A07_a_second_node_of_the_same_name_is_refused_with_both_addresses) {
  const cluster two{two_nodes()};
  auto head = start_node(two, "n0");
  auto tail = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  auto second = start_node(two, "n1");
  const auto second_pid = second.pid();
  const auto text = text_of(second, 15s);
  const auto ended = second.wait(5s);
  BOOST_TEST((ended && ended->exited && ended->code != 0));
  BOOST_TEST(has(text, "is here already"), text);
  BOOST_TEST(has(text, "process " + std::to_string(tail.pid())), text);
  BOOST_TEST(has(text, "process " + std::to_string(second_pid)), text);
  BOOST_TEST(two.generate({one_request}).size() == 1u); // nobody else noticed
}

BOOST_AUTO_TEST_CASE(A13_three_clusters_at_once_find_ports) {
  const cluster first{two_nodes()};
  const cluster second{two_nodes()};
  const cluster third{two_nodes()};
  std::vector<std::vector<told_answer>> found(3);
  std::vector<test::process> running;
  for (const auto* one : {&first, &second, &third})
    running.push_back(
      one->start({"generate", "FILE", "--prompt", "In the", "--max-tokens", "5", "--json"}));
  for (std::size_t i = 0; i < 3; ++i) {
    running[i].finish_input();
    found[i] = read_answers(running[i].hear_all(40s));
    const auto ended = running[i].wait(5s);
    BOOST_TEST((ended && ended->exited && ended->code == 0));
    BOOST_REQUIRE(found[i].size() == 1u);
    BOOST_TEST(found[i][0].tokens == found[0][0].tokens, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(A13_a_taken_port_is_named_with_its_key) {
  const int squatter = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  BOOST_REQUIRE(bind(squatter, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  BOOST_REQUIRE(listen(squatter, 1) == 0);
  socklen_t size = sizeof address;
  getsockname(squatter, reinterpret_cast<sockaddr*>(&address), &size);
  const auto port = std::to_string(ntohs(address.sin_port));
  auto shape = two_nodes();
  shape.node_more = "";
  const cluster two{shape};
  const auto ran = two.run({"node", "FILE", "--name", "n0", "--set", "node.n0.port=" + port}, 20);
  close(squatter);
  BOOST_TEST(ran.code != 0);
  BOOST_TEST(ran.mentions(port), ran.all());
  BOOST_TEST(ran.mentions("port"), ran.all());
}

BOOST_AUTO_TEST_CASE(A21_a_node_without_the_weights_or_with_others_is_named) {
  const cluster two{two_nodes()};
  const auto missing = two.run(
    {"generate", "FILE", "--prompt", "x", "--set", "node.n1.model_path=/nonexistent/model"}, 30);
  BOOST_TEST(missing.code != 0);
  BOOST_TEST(missing.mentions("/nonexistent/model"), missing.all());
  const auto other = two.run({"generate",
                              "FILE",
                              "--prompt",
                              "x",
                              "--set",
                              "node.n1.model_path=" + other_weights().folder().string()},
                             30);
  BOOST_TEST(other.code != 0);
  BOOST_TEST(other.mentions("holds other weights: the digest of tensor"), other.all());
  BOOST_TEST(other.mentions("n1"), other.all());
}

BOOST_AUTO_TEST_CASE(A23_a_node_that_restarts_before_the_cluster_is_ready_replaces_itself) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = 3;
  const cluster three{shape};
  auto head = start_node(three, "n0");
  auto ghost = start_node(three, "n1");
  BOOST_REQUIRE(status_becomes(three, "\"state\":\"joined\"", 15s));
  std::this_thread::sleep_for(300ms);
  ghost.signal(SIGKILL);
  ghost.wait(5s);
  auto again = start_node(three, "n1");
  auto tail = start_node(three, "n2");
  BOOST_TEST(status_becomes(three, serving, 20s));
}

BOOST_AUTO_TEST_CASE(A25_not_ready_before_the_last_stage_is) {
  const cluster two{two_nodes()};
  auto head = start_node(two, "n0");
  BOOST_REQUIRE(status_becomes(two, "gathering", 15s));
  const auto early = two.try_generate({one_request}, {}, 20);
  BOOST_TEST(early.code != 0);
  BOOST_TEST(early.mentions("does not serve now"), early.all());
  auto tail = start_node(two, "n1");
  BOOST_TEST(status_becomes(two, serving, 20s));
}

BOOST_AUTO_TEST_CASE(missing_nodes_are_named_when_the_deadline_passes) {
  const cluster two{two_nodes()};
  const auto head =
    two.run({"node", "FILE", "--name", "n0", "--set", "deadlines.join_ms=1500"}, 30);
  BOOST_TEST(head.code == 5);
  BOOST_TEST(head.mentions("node 'n1' at 127.0.0.1 (it never said hello)"), head.all());
  const auto tail =
    two.run({"node", "FILE", "--name", "n1", "--set", "deadlines.join_ms=1500"}, 30);
  BOOST_TEST(tail.code == 5);
  BOOST_TEST(tail.mentions("did not reach the head, node 'n0' at 127.0.0.1"), tail.all());
}

BOOST_AUTO_TEST_CASE(A27_no_network_is_needed) {
  const cluster two{two_nodes()};
  const auto file = two.file().string();
  auto child = test::process::run({"/bin/sh",
                                   "-c",
                                   "unshare -n sh -c 'ip link set lo up && exec \"$0\" generate "
                                   "\"$1\" --prompt In --max-tokens 4 --json' \"$0\" \"$1\"",
                                   troupe_program().string(),
                                   file},
                                  {"XDG_RUNTIME_DIR=" + two.folder().path().string()},
                                  true);
  child.finish_input();
  const auto lines = child.hear_all(30s);
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  if (has(text, "unshare failed") || has(text, "Operation not permitted")) {
    BOOST_TEST_MESSAGE("DID NOT RUN: this system allows no network namespace");
    return;
  }
  BOOST_TEST(read_answers(lines).size() == 1u, text);
}

BOOST_AUTO_TEST_CASE(up_serves_until_it_is_told_to_stop_and_leaves_nothing) {
  const cluster two{two_nodes()};
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  BOOST_TEST(two.generate({one_request}).size() == 1u);
  up.signal(SIGINT);
  const auto ended = up.wait(20s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
  const auto after = two.run({"status", "FILE"}, 10);
  BOOST_TEST(after.code == 5);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{two.folder().path()})
    BOOST_TEST(entry.path().filename() != "control.json");
}

BOOST_AUTO_TEST_CASE(E05_nodes_end_with_a_parent_that_is_killed) {
  const cluster two{two_nodes()};
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  up.signal(SIGKILL);
  up.wait(5s);
  const auto until = std::chrono::steady_clock::now() + 5s;
  bool gone = false;
  while (!gone && std::chrono::steady_clock::now() < until) {
    gone = two.run({"status", "FILE"}, 5).code == 5;
    std::this_thread::sleep_for(100ms);
  }
  BOOST_TEST(gone);
}

BOOST_AUTO_TEST_CASE(a_cancelled_request_leaves_every_rank) {
  const cluster two{two_nodes()};
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  auto long_one =
    two.start({"generate", "FILE", "--prompt", "In the", "--max-tokens", "2000", "--ignore-end"});
  BOOST_REQUIRE(status_becomes(two, "\"running\":1", 10s));
  long_one.signal(SIGINT);
  const auto ended = long_one.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code == 130));
  BOOST_TEST(status_becomes(two, "\"pages_used\":0", 5s));
  auto killed =
    two.start({"generate", "FILE", "--prompt", "In the", "--max-tokens", "2000", "--ignore-end"});
  BOOST_REQUIRE(status_becomes(two, "\"running\":1", 10s));
  killed.signal(SIGKILL);
  BOOST_TEST(status_becomes(two, "\"pages_used\":0", 5s));
  up.signal(SIGTERM);
  BOOST_TEST(up.wait(20s).has_value());
}

BOOST_AUTO_TEST_CASE(a_boundary_is_one_message_a_step_and_is_not_copied) {
  auto shape = two_nodes();
  compute::random_model wanted;
  wanted.layers = 4;
  wanted.hidden = 256;
  const served_model wide{wanted};
  shape.model = wide.folder();
  const cluster two{shape};
  auto up = two.start({"up", "FILE"});
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  constexpr std::uint64_t prompt = 8;
  constexpr std::uint64_t answer = 30;
  two.generate({token_prompt(random_tokens(prompt, 2048, 1), answer)});
  std::this_thread::sleep_for(500ms); // the next beat
  const auto gauges = read_gauges(two.run({"status", "FILE", "--json"}, 5).lines);
  BOOST_REQUIRE(gauges.size() == 2u);
  constexpr std::uint64_t steps = answer; // the prompt fits into one
  constexpr std::uint64_t rows = prompt + answer - 1;
  BOOST_TEST(gauges[0].at("steps") == steps);
  BOOST_TEST(gauges[0].at("boundary_frames") == steps);
  BOOST_TEST(gauges[0].at("boundary_bytes") == rows * 256 * sizeof(float) + steps * 96);
  BOOST_TEST(gauges[1].at("tensor_copies") == 0u);
  BOOST_TEST(gauges[1].at("boundary_frames") == 0u);
  up.signal(SIGTERM);
  BOOST_TEST(up.wait(20s).has_value());
}

BOOST_AUTO_TEST_CASE(idle_ranks_take_less_than_a_hundredth_of_a_core) {
  const cluster two{two_nodes()};
  auto head = start_node(two, "n0");
  auto tail = start_node(two, "n1");
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  two.generate({one_request});
  std::this_thread::sleep_for(500ms);
  const auto head_before = cpu_ticks(head.pid());
  const auto tail_before = cpu_ticks(tail.pid());
  std::this_thread::sleep_for(8s);
  const double ticks = 8.0 * static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto head_share = static_cast<double>(cpu_ticks(head.pid()) - head_before) / ticks;
  const auto tail_share = static_cast<double>(cpu_ticks(tail.pid()) - tail_before) / ticks;
  BOOST_TEST_MESSAGE("idle: head " << head_share << ", tail " << tail_share << " of a core");
  BOOST_TEST(head_share < 0.01);
  BOOST_TEST(tail_share < 0.01);
}
