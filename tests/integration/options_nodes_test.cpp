// A09: what the options of the cluster, its nodes and its deadlines do, seen from outside; and that
// no key of the table of settings is left out.

#include "config/cluster_file.hpp"
#include "tests/paths.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <csignal>
#include <fstream>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

cluster_shape nodes(std::size_t count, const std::string& node_more = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = count;
  shape.node_more = node_more;
  return shape;
}

/// A short answer on a cluster of its own, with the logs of its nodes.
outcome logged(const cluster& which, const std::vector<std::string>& options) {
  return which.run(
    with({"generate", "FILE", "--prompt", "In", "--max-tokens", "3", "--log"}, set(options)));
}

/// Which cores the threads of a process may use, as the kernel writes it.
std::vector<std::string> allowed_cores(pid_t pid) {
  std::vector<std::string> found;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator{tasks}) {
    std::ifstream in{task.path() / "status"};
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("Cpus_allowed_list:"))
        found.push_back(line.substr(line.find_last_of('\t') + 1));
  }
  return found;
}

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now()
                                                               - begun);
}

const std::string endless = token_prompt({1, 2, 3}, 1900);

} // namespace

BOOST_AUTO_TEST_CASE(A09_cluster_name_head_and_log) {
  const cluster two{nodes(2)};
  {
    const serving_cluster served{two, set({"cluster.name=choir", "cluster.head=n1"})};
    const auto options = set({"cluster.name=choir", "cluster.head=n1"});
    const auto told = two.run(with({"status", "FILE"}, options));
    BOOST_TEST(told.mentions("choir"), told.all());
  }
  const auto usual = logged(two, {});
  BOOST_TEST(usual.mentions("[n0]"), usual.all());
  BOOST_TEST(usual.mentions("info head listens on"), usual.all());
  BOOST_TEST(!usual.mentions(" trace "), usual.all());
  const auto moved = logged(two, {"cluster.head=n1"});
  BOOST_TEST(moved.code == 0, moved.all());
  for (const auto& line : moved.lines)
    if (line.find("head listens on") != std::string::npos)
      BOOST_TEST(line.starts_with("[n1]"), line);
  BOOST_TEST(!usual.mentions("debug request 1 "));
  const auto debug = logged(two, {"cluster.log=debug"});
  BOOST_TEST(debug.mentions("debug request 1 ends after 3 tokens"), debug.all());
  BOOST_TEST(!debug.mentions(" trace "));
  const auto traced = logged(two, {"cluster.log=trace"});
  BOOST_TEST(traced.mentions("trace rank 0"), traced.all());
  BOOST_TEST(!traced.mentions(" data "));
  BOOST_TEST(logged(two, {"cluster.log=data"}).mentions("data frame 1 of peer 0 to peer 1: "));
  BOOST_TEST(!logged(two, {"cluster.log=error"}).mentions(" info "));
}

// Hosts log as they like: it is no disagreement about the cluster.
BOOST_AUTO_TEST_CASE(A09_nodes_may_log_differently) {
  const cluster two{nodes(2)};
  auto head = start_node(two, "n0");
  auto tail = start_node(two, "n1", {"cluster.log=debug"});
  BOOST_TEST(status_becomes(two, serving, 20s));
}

// Rows G03 and G11: what computes is said, too.
BOOST_AUTO_TEST_CASE(A09_G03_node_threads_and_instruction_set_are_used_and_said) {
  auto shape = nodes(1);
  compute::random_model wanted;
  wanted.stored = dtype::bf16;
  const served_model half{wanted};
  shape.model = half.folder();
  const cluster one{shape};
  const auto usual = logged(one, {});
  BOOST_TEST(usual.mentions("1 thread; weights of 16 bits are computed in f32"), usual.all());
  BOOST_TEST(usual.mentions("weights are held as bf16"), usual.all());
  BOOST_TEST(logged(one, {"node.n0.threads=2"}).mentions("2 threads; "));
  BOOST_TEST(logged(one, {"node.n0.instruction_set=scalar"}).mentions("on cpu scalar, "));
  const auto unknown = logged(one, {"node.n0.instruction_set=mmx"});
  BOOST_TEST(unknown.code == 2, unknown.all());
  BOOST_TEST(unknown.mentions("instruction_set"), unknown.all());
  BOOST_TEST(unknown.mentions("scalar"), unknown.all()); // what would work
  const auto device = logged(one, {"node.n0.device=gpu"});
  BOOST_TEST(device.code == 2);
  BOOST_TEST(device.mentions("cpu"), device.all());
}

BOOST_AUTO_TEST_CASE(A09_node_pin_binds_threads_to_cores) {
  const cluster one{nodes(1)};
  const auto count = [&](const std::vector<std::string>& options) {
    auto child = start_node(one, "n0", options);
    BOOST_REQUIRE(status_becomes(one, serving, 20s));
    const auto cores = allowed_cores(child.pid());
    child.signal(SIGTERM);
    child.wait(10s);
    return std::count(cores.begin(), cores.end(), "0");
  };
  if (std::thread::hardware_concurrency() > 1)
    BOOST_TEST(count({}) == 0);
  BOOST_TEST(count({"node.n0.pin=true"}) >= 1);
}

BOOST_AUTO_TEST_CASE(A09_node_address_and_port_are_where_the_head_listens) {
  const cluster one{nodes(1)};
  auto elsewhere = start_node(one, "n0", {"node.n0.bind=127.0.0.2"});
  BOOST_TEST(hears(elsewhere, "head listens on 127.0.0.2:"));
  elsewhere.signal(SIGTERM);
  elsewhere.wait(10s);
  const cluster there{nodes(2)};
  const auto named = logged(
    there, {"node.n0.bind=localhost", "node.n1.bind=localhost", "node.n1.advertise=LocalHost"});
  BOOST_TEST(named.code == 0, named.all());
  BOOST_TEST(named.mentions("head listens on localhost:"), named.all());
  const cluster other{nodes(2)};
  const auto shown =
    other.run(with({"plan", "FILE", "--json"}, set({"node.n1.advertise=127.0.0.3"})));
  BOOST_TEST(shown.mentions("127.0.0.3"), shown.all());
  const cluster third{nodes(1)};
  auto fixed = start_node(third, "n0", {"node.n0.port=38471"});
  BOOST_TEST(hears(fixed, "head listens on 127.0.0.1:38471"));
}

BOOST_AUTO_TEST_CASE(A09_node_memory_ranks_devices_transports_and_path) {
  const cluster two{nodes(2)};
  const auto little = logged(two, {"node.n1.memory=100kB"});
  BOOST_TEST(little.code == 4, little.all());
  BOOST_TEST(little.mentions("node 'n1'"), little.all());
  const auto ranks = logged(two, {"node.n1.ranks=2"});
  BOOST_TEST(ranks.code == 2);
  BOOST_TEST(ranks.mentions("2 nodes with 3 ranks in all"), ranks.all());
  const auto nowhere = logged(two, {"node.n1.model_path=/no/such/model"});
  BOOST_TEST(nowhere.code == 3);
  BOOST_TEST(nowhere.mentions("/no/such/model"), nowhere.all());
  const auto device = logged(two, {"node.n0.devices=[\"lo\"]", "node.n1.devices=[\"nic9\"]"});
  BOOST_TEST(device.code != 0);
  BOOST_TEST(device.mentions("nic9"), device.all());
  const auto usual = logged(two, {});
  BOOST_TEST(!usual.mentions("linked: to rank 1 tcp"), usual.all());
  const auto wire = logged(two, {"node.n0.transports=tcp,self", "node.n1.transports=tcp,self"});
  BOOST_TEST(wire.mentions("linked: to rank 1 tcp"), wire.all());
}

BOOST_AUTO_TEST_CASE(A09_security_files_are_asked_for) {
  const cluster two{nodes(2)};
  const auto secret = logged(two, {"security.secret_file=/no/such/secret"});
  BOOST_TEST(secret.code != 0);
  BOOST_TEST(secret.mentions("/no/such/secret"), secret.all());
  for (const std::string missing : {"certificate", "key", "authority"}) {
    std::vector<std::string> options;
    for (const std::string key : {"security.certificate", "security.key", "security.authority"})
      options.push_back(key + "=/no/such/" + key.substr(9));
    const auto refused = logged(two, options);
    BOOST_TEST(refused.code != 0);
    BOOST_TEST(refused.mentions("/no/such/" + missing), refused.all());
  }
}

BOOST_AUTO_TEST_CASE(A09_deadlines_of_a_request_a_step_and_the_end) {
  // Deep enough that an endless answer takes seconds on any machine.
  compute::random_model wanted;
  wanted.layers = 40;
  wanted.hidden = 256;
  wanted.ffn = 512;
  const served_model deep{wanted};
  auto shape = nodes(2);
  shape.model = deep.folder();
  const cluster two{shape};
  {
    const serving_cluster served{two, set({"deadlines.request_ms=1500"})};
    const auto late = two.try_generate({endless, token_prompt({4}, 2)});
    BOOST_TEST(late.code == 5, late.all());
    BOOST_TEST(late.mentions("longer than 1500 ms"), late.all());
    BOOST_TEST(read_answers(late.lines).at(1).finish == "length");
  }
  {
    const serving_cluster served{two, set({"deadlines.drain_ms=200"})};
    auto child = two.start(
      {"generate", "FILE", "--prompt", "In", "--max-tokens", "1900", "--ignore-end", "-q"});
    child.finish_input();
    BOOST_REQUIRE(served.becomes("running", 1));
    const auto begun = std::chrono::steady_clock::now();
    BOOST_TEST(two.run(with({"stop", "FILE"}, set({"deadlines.drain_ms=200"}))).code == 0);
    BOOST_TEST(since(begun).count() < 4000);
    const auto ended = child.wait(5s);
    BOOST_TEST((ended && ended->code != 0)); // cut off, and told so
  }
  // A step that is too long for its deadline, though all ranks are at work.
  const std::vector<std::string> quick{"deadlines.step_ms=300",
                                       "deadlines.progress_ms=290",
                                       "schedule.prefill_chunk=2000",
                                       "schedule.step_tokens=2000"};
  auto head = start_node(two, "n0", quick);
  auto tail = start_node(two, "n1", quick);
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  const auto stuck = two.try_generate({token_prompt(random_tokens(1900, 2048, 1), 2)}, {}, 60);
  BOOST_TEST(hears(head, "a step got no output within 300 ms"));
  BOOST_TEST(stuck.mentions("epochs ended before its next token"), stuck.all()); // and not for ever
}

BOOST_AUTO_TEST_CASE(A09_deadlines_of_joining_loading_and_silence) {
  const cluster three{nodes(3)};
  const std::vector<std::string> options{"deadlines.load_ms=600", "deadlines.progress_ms=5000"};
  const auto late =
    three.run(with({"node", "FILE", "--name", "n0"}, set({"deadlines.join_ms=500"})), 20);
  BOOST_TEST(late.code == 5);
  BOOST_TEST(late.mentions("500 ms (deadlines.join_ms)"), late.all());

  auto head = start_node(three, "n0", options);
  auto frozen = start_node(three, "n1", options);
  BOOST_REQUIRE(hears(head, "node 'n1' joined"));
  frozen.signal(SIGSTOP);
  auto last = start_node(three, "n2", options);
  BOOST_TEST(hears(head, "not every rank loaded within 600 ms (deadlines.load_ms)"));
  frozen.signal(SIGCONT);

  const cluster two{nodes(2)};
  auto first = start_node(two, "n0", {"deadlines.progress_ms=300"});
  auto silent = start_node(two, "n1", {"deadlines.progress_ms=300"});
  BOOST_REQUIRE(status_becomes(two, serving, 20s));
  silent.signal(SIGSTOP);
  BOOST_TEST(hears(first, "node 'n1' at 127.0.0.1 is gone", 6s));
  silent.signal(SIGCONT);
}

BOOST_AUTO_TEST_CASE(A09_deadlines_of_connecting_and_asking) {
  // Somebody who takes connections and says nothing.
  const int mute = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  BOOST_REQUIRE(::bind(mute, reinterpret_cast<sockaddr*>(&address), size) == 0);
  BOOST_REQUIRE(::listen(mute, 8) == 0);
  ::getsockname(mute, reinterpret_cast<sockaddr*>(&address), &size);
  const cluster one{nodes(1)};
  const auto port = "node.n0.port=" + std::to_string(ntohs(address.sin_port));
  const auto asks = [&](const std::string& connect_ms) {
    const auto begun = std::chrono::steady_clock::now();
    const auto told =
      one.run(with({"status", "FILE"}, set({port, "deadlines.connect_ms=" + connect_ms})));
    BOOST_TEST(told.code != 0);
    return since(begun);
  };
  BOOST_TEST(asks("200").count() < 1900);
  BOOST_TEST(asks("2000").count() >= 1900);
  ::close(mute);

  auto head = start_node(one, "n0");
  BOOST_REQUIRE(status_becomes(one, serving, 20s));
  head.signal(SIGSTOP);
  const auto begun = std::chrono::steady_clock::now();
  const auto frozen = one.run(
    with({"status", "FILE"}, set({"deadlines.status_ms=300", "deadlines.connect_ms=300"})), 20);
  BOOST_TEST(frozen.code == 5, frozen.all());
  BOOST_TEST(since(begun).count() < 1900);
  head.signal(SIGCONT);
}

BOOST_AUTO_TEST_CASE(A09_no_key_is_left_out) {
  std::string tried;
  for (const auto* name : {"options_work_test.cpp",
                           "options_nodes_test.cpp",
                           "faulty_wires_test.cpp",
                           "serve_leaving_test.cpp",
                           "serve_limits_test.cpp",
                           "tokens_and_text_test.cpp",
                           "numbers_test.cpp",
                           "../fault/recovery_test.cpp",
                           "../fault/elastic_test.cpp",
                           "../fault/journal_test.cpp"}) {
    std::ifstream in{std::string{TROUPE_SOURCE_DIR} + "/tests/integration/" + name};
    BOOST_REQUIRE(in);
    tried.append(std::istreambuf_iterator<char>(in), {});
  }
  const auto settings =
    parse_cluster_text("[model]\npath = \"demo\"\n[[node]]\nname = \"n0\"\n", "cluster.toml", {});
  BOOST_REQUIRE(settings);
  std::size_t keys = 0;
  for (const auto& row : describe_settings(*settings)) {
    const auto field = row.key.substr(row.key.rfind('.') + 1);
    if (row.key == "node.n0.name")
      continue; // in every file
    const auto name = row.key.starts_with("node.") ? "." + field : row.key;
    BOOST_TEST((tried.find(name + "=") != std::string::npos
                || tried.find("\"" + row.key + "\"") != std::string::npos),
               row.key << " has no test of its effect");
    ++keys;
  }
  BOOST_TEST(keys > 50u);
}
