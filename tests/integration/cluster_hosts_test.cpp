// A cluster on hosts of its own: three network namespaces on two networks, of which it may use one,
// real UCX over TCP between them, a folder and a copy of the model for each. Where the system
// allows no namespaces, the cases say that they did not run.

#include "tests/support/hosts.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t answer_tokens = 12;
constexpr std::size_t spectator = 4; ///< The host that takes no part in a cluster of three.

/// Six layers, one weight file each and more: no host needs all of them.
const served_model& model_in_files() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 6;
    wanted.hidden = 96;
    wanted.heads = 6;
    wanted.kv_heads = 3;
    wanted.ffn = 200;
    wanted.files = 6;
    return wanted;
  }()};
  return model;
}

std::vector<std::string> prompts() {
  return {token_prompt(random_tokens(5, 2048, 1), answer_tokens),
          token_prompt(random_tokens(70, 2048, 2), answer_tokens)};
}

/// One process, one rank, no network.
const std::vector<told_answer>& reference() {
  static const auto answers = [] {
    cluster_shape shape;
    shape.model = model_in_files().folder();
    return cluster{shape}.generate(prompts());
  }();
  return answers;
}

lab_shape shape_of(std::size_t pipeline, std::size_t tensor) {
  lab_shape shape;
  shape.model = model_in_files().folder();
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  return shape;
}

void check_same_bits(const std::vector<told_answer>& found) {
  for (std::size_t i = 0; i < reference().size(); ++i) {
    BOOST_TEST(found[i].tokens == reference()[i].tokens, boost::test_tools::per_element());
    BOOST_TEST(found[i].digests.size() == answer_tokens);
    BOOST_TEST(found[i].digests == reference()[i].digests, boost::test_tools::per_element());
  }
}

void check_same_tokens(const std::vector<told_answer>& found) {
  for (std::size_t i = 0; i < reference().size(); ++i) {
    BOOST_TEST(found[i].tokens == reference()[i].tokens, boost::test_tools::per_element());
    for (std::size_t t = 0; t < answer_tokens; ++t)
      BOOST_TEST(std::abs(found[i].logprobs.at(t) - reference()[i].logprobs.at(t)) < 1e-4);
  }
}

/// Row E29: of two networks that join the hosts only the one of the cluster file is used, and each
/// host is on it with its own address (row F09).
void check_addresses(const host_lab& lab) {
  for (std::size_t host = 1; host <= 3; ++host) {
    const auto all = lab.network().tcp_addresses(host);
    BOOST_TEST(!all.empty());
    for (const auto& one : all)
      BOOST_TEST(one == lan::address(host), "host " << host << " has a socket on " << one);
  }
}

void end(std::vector<test::process>& nodes, const host_lab& lab) {
  const auto stopped = lab.run(2, {"stop", "FILE"});
  BOOST_TEST(stopped.code == 0, stopped.all());
  for (auto& node : nodes) {
    const auto ended = node.wait(10s);
    BOOST_TEST((ended && ended->exited && ended->code == 0));
  }
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// Runs where namespaces are allowed; where not it says so, at every level of the log.
boost::test_tools::assertion_result with_hosts(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result possible{why_no_hosts().empty()};
  possible.message() << "DID NOT RUN: " << why_no_hosts();
  if (!possible)
    std::fprintf(stderr, "cluster_of_hosts DID NOT RUN: %s\n", why_no_hosts().c_str());
  return possible;
}

} // namespace

BOOST_AUTO_TEST_SUITE(cluster_of_hosts, *boost::unit_test::precondition(with_hosts))

BOOST_AUTO_TEST_CASE(E29_stages_on_three_hosts_use_the_network_of_the_file_and_give_the_same_bits) {
  auto shape = shape_of(3, 1);
  shape.everywhere = 2; // bind = "0.0.0.0" is no leave for the other network
  const host_lab lab{shape};
  auto nodes = lab.start_all();
  const auto ranks = lab.ranks();
  BOOST_REQUIRE(ranks.size() == 3u);
  BOOST_TEST(ranks[0].links == "to rank 1 tcp/net0");
  BOOST_TEST(ranks[1].links == "to rank 2 tcp/net0");
  BOOST_TEST(ranks[2].links == "to conductor tcp/net0");
  check_same_bits(lab.generate(1, prompts()));
  check_same_bits(lab.generate(3, prompts()));
  check_same_bits(lab.generate(spectator, prompts()));
  check_addresses(lab);
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(F09_hosts_may_be_named_in_place_of_their_addresses) {
  auto shape = shape_of(3, 1);
  shape.by_name = true;
  shape.everywhere = 2;
  const host_lab lab{shape};
  auto nodes = lab.start_all();
  BOOST_TEST(lab.ranks().at(0).links == "to rank 1 tcp/net0");
  check_same_bits(lab.generate(spectator, prompts()));
  check_addresses(lab);
  const auto told = lab.run(3, {"status", "FILE"});
  BOOST_TEST(told.mentions(lan::name(2)), told.all());
  const auto examined = lab.run(3, {"doctor", "FILE"});
  BOOST_TEST(examined.mentions(lan::name(2) + " answers (node h2)"), examined.all());
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(a_name_that_nobody_knows_is_said) {
  auto shape = shape_of(3, 1);
  shape.by_name = true;
  const host_lab lab{shape};
  const auto unknown = lab.run(2,
                               {"node",
                                "FILE",
                                "--name",
                                "h2",
                                "--set",
                                "node.h1.bind=nowhere.example",
                                "--set",
                                "deadlines.join_ms=1000"});
  BOOST_TEST(unknown.code == 5, unknown.all());
  BOOST_TEST(unknown.mentions("the name nowhere.example is not known here"), unknown.all());
}

BOOST_AUTO_TEST_CASE(E29_a_tensor_group_of_three_hosts_reduces_over_their_network) {
  const host_lab lab{shape_of(1, 3)};
  auto nodes = lab.start_all();
  for (const auto& rank : lab.ranks())
    BOOST_TEST(has(rank.links, "tensor group over tcp/net0"), rank.links);
  const auto first = lab.generate(1, prompts());
  check_same_tokens(first);
  const auto second = lab.generate(spectator, prompts());
  for (std::size_t i = 0; i < first.size(); ++i)
    BOOST_TEST(first[i].digests == second[i].digests, boost::test_tools::per_element());
  check_addresses(lab);
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(a_guest_from_a_host_that_is_not_in_the_file_joins_with_the_secret) {
  const host_lab lab{shape_of(3, 1)};
  auto nodes = lab.start_all();
  std::vector<std::string> join{"join",
                                lan::address(1) + ":7000",
                                "--name",
                                "guest",
                                "--model",
                                lab.model(2).string(),
                                "--set",
                                "node.guest.bind=" + lan::address(spectator),
                                "--set",
                                "node.guest.transports=tcp,self",
                                "--set",
                                "node.guest.threads=1"};
  const auto open = lab.run(spectator, join);
  BOOST_TEST(open.code == 2, open.all());
  BOOST_TEST(open.mentions("secret"), open.all());
  join.insert(
    join.end(),
    {"--set", "security.secret_file=" + (lab.folder(spectator) / "cluster.secret").string()});
  lab.set_secret(spectator, "another secret than the one that they share\n");
  const auto stranger = lab.run(spectator, join);
  BOOST_TEST(stranger.code == 6, stranger.all());
  lab.set_secret(spectator, "a secret that these hosts share: 7d1f3c0a\n");
  auto guest = lab.start(spectator, join);
  for (const auto until = std::chrono::steady_clock::now() + 20s;
       lab.ranks().size() < 4u || !lab.status_becomes("\"phase\":\"serving\"", 5s);)
    if (std::chrono::steady_clock::now() >= until) {
      for (const auto& line : guest.hear_all(1s))
        BOOST_TEST_MESSAGE(line);
      BOOST_FAIL(lab.run(1, {"status", "FILE"}).all());
    }
  BOOST_TEST(lab.ranks().at(2).links == "to rank 3 tcp/net0");
  check_same_bits(lab.generate(2, prompts()));
  end(nodes, lab);
  const auto ended = guest.wait(10s);
  BOOST_TEST((ended && ended->exited && ended->code == 0));
}

BOOST_AUTO_TEST_CASE(F08_stages_times_groups_on_three_hosts_of_unequal_share) {
  // Two ranks at the head: its group stays inside, the other one spans hosts. Then across.
  for (const auto& ranks : {std::vector<std::size_t>{2, 1, 1}, {1, 2, 1}}) {
    auto shape = shape_of(2, 2);
    shape.ranks = ranks;
    const host_lab lab{shape};
    auto nodes = lab.start_all();
    const auto seen = lab.ranks();
    BOOST_REQUIRE(seen.size() == 4u);
    const bool inside = ranks[0] == 2;
    BOOST_TEST(has(seen[0].links, inside ? "group over shared memory" : "group over tcp/net0"));
    BOOST_TEST(has(seen[3].links, "group over tcp/net0"), seen[3].links);
    check_same_tokens(lab.generate(1, prompts()));
    check_addresses(lab);
    end(nodes, lab);
  }
}

BOOST_AUTO_TEST_CASE(a_cable_that_is_pulled_is_noticed_in_time_and_the_answer_goes_on) {
  const std::vector<std::string> lines{token_prompt(random_tokens(40, 2048, 3), 1200)};
  cluster_shape alone;
  alone.model = model_in_files().folder();
  const auto expected = cluster{alone}.generate(lines);
  const host_lab lab{shape_of(3, 1)};
  auto nodes = lab.start_all();
  const auto prompts_file = lab.folder(spectator) / "prompts.jsonl";
  write_text(prompts_file, lines.front() + "\n");
  auto asking = lab.start(
    spectator, {"generate", "FILE", "--prompts-file", prompts_file, "--json", "--digests"});
  asking.finish_input();
  BOOST_REQUIRE(lab.status_becomes("\"running\":1", 10s));
  const auto pulled = std::chrono::steady_clock::now();
  lab.network().ip(3, {"link", "set", "net0", "down"});
  BOOST_TEST(lab.status_becomes("\"phase\":\"gathering\"", 10s));
  const auto noticed = std::chrono::steady_clock::now() - pulled;
  BOOST_TEST((noticed < 3s), "after " << std::chrono::duration<double>(noticed).count() << " s");
  auto& cut_off = nodes.front(); // start_all() begins with the last host
  const auto ended = cut_off.wait(20s);
  BOOST_TEST((ended && ended->exited && ended->code != 0)); // alone it serves nobody
  lab.network().ip(3, {"link", "set", "net0", "up"});
  cut_off = lab.start_node(3);
  const auto found = read_answers(asking.hear_all(60s));
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].digests == expected[0].digests, boost::test_tools::per_element());
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(B29_a_host_needs_only_the_files_of_its_layers) {
  host_lab lab{shape_of(3, 1)};
  std::vector<seen_rank> ranks;
  {
    auto nodes = lab.start_all();
    ranks = lab.ranks();
    end(nodes, lab);
  }
  for (std::size_t host = 1; host <= 3; ++host) {
    const auto& rank = ranks.at(host - 1);
    const auto removed = lab.keep_files(host, [&](const std::string& tensor) {
      if (!tensor.starts_with("model.layers."))
        return tensor.starts_with("model.embed") ? host == 1 : host == 3;
      const auto layer = std::stoul(tensor.substr(std::string_view{"model.layers."}.size()));
      return layer >= rank.first_unit && layer < rank.last_unit;
    });
    BOOST_TEST(removed > 0u);
  }
  auto nodes = lab.start_all();
  check_same_bits(lab.generate(1, prompts()));
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(B29_a_file_that_a_host_needs_is_named_with_its_tensor) {
  host_lab lab{shape_of(3, 1)};
  BOOST_TEST(lab.keep_files(2, [](const std::string&) { return false; }) > 0u);
  auto head = lab.start_node(1);
  auto tail = lab.start_node(3);
  const auto ran = lab.run(2, {"node", "FILE", "--name", "h2"});
  BOOST_TEST(ran.code == 3, ran.all());
  BOOST_TEST(ran.mentions("which is not here"), ran.all());
  BOOST_TEST(ran.mentions("model.safetensors.index.json") == false, ran.all());
}

BOOST_AUTO_TEST_CASE(weights_never_travel) {
  const host_lab lab{shape_of(3, 1)};
  std::map<std::size_t, std::uint64_t> before;
  for (std::size_t host = 1; host <= 3; ++host)
    before[host] = lab.network().bytes_sent(host, "net0");
  auto nodes = lab.start_all();
  for (const auto& rank : lab.ranks())
    BOOST_TEST(rank.payload_bytes_sent == 0u);
  std::uint64_t weights = 0;
  for (const auto& rank : lab.ranks())
    weights = std::max(weights, rank.weight_bytes);
  for (std::size_t host = 1; host <= 3; ++host) {
    const auto sent = lab.network().bytes_sent(host, "net0") - before[host];
    BOOST_TEST_MESSAGE("host " << host << " sent " << sent << " bytes until it served");
    BOOST_TEST(sent > 0u);
    BOOST_TEST(sent < weights / 8);
  }
  end(nodes, lab);
}

BOOST_AUTO_TEST_CASE(another_secret_is_refused_by_name) {
  const host_lab lab{shape_of(3, 1)};
  lab.set_secret(3, "some other secret altogether: 99ab0\n");
  auto head = lab.start_node(1);
  auto second = lab.start_node(2);
  BOOST_REQUIRE(lab.status_becomes("\"state\":\"joined\"", 10s));
  const auto refused = lab.run(3, {"node", "FILE", "--name", "h3"});
  BOOST_TEST(refused.code == 6, refused.all());
  BOOST_TEST(refused.mentions("secret"), refused.all());
  BOOST_TEST(refused.mentions("10.77.0.1:7000"), refused.all());
  const auto client = lab.run(3, {"generate", "FILE", "--prompt", "x"});
  BOOST_TEST(client.code == 6, client.all());
  BOOST_TEST(client.mentions("secret"), client.all());
  BOOST_TEST(lab.status_becomes("\"phase\":\"gathering\"", 5s)); // the others go on waiting
}

BOOST_AUTO_TEST_CASE(a_head_without_a_route_is_said_within_the_deadline) {
  const host_lab lab{shape_of(3, 1)};
  auto head = lab.start_node(1);
  lab.network().ip(2, {"route", "flush", "dev", "net0"});
  const auto begin = std::chrono::steady_clock::now();
  const auto ran = lab.run(2, {"node", "FILE", "--name", "h2", "--set", "deadlines.join_ms=1000"});
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 5s));
  BOOST_TEST(ran.code == 5, ran.all());
  BOOST_TEST(ran.mentions("node 'h1' at 10.77.0.1"), ran.all());
  BOOST_TEST(ran.mentions("Network is unreachable"), ran.all());
}

BOOST_AUTO_TEST_CASE(a_head_behind_a_firewall_is_said_within_the_deadline) {
  const host_lab lab{shape_of(3, 1)};
  auto head = lab.start_node(1);
  // What goes to a station that is not there vanishes as in a packet filter.
  lab.network().ip(2,
                   {"neigh",
                    "replace",
                    lan::address(1),
                    "lladdr",
                    "02:00:00:00:00:77",
                    "dev",
                    "net0",
                    "nud",
                    "permanent"});
  const auto begin = std::chrono::steady_clock::now();
  const auto ran = lab.run(2,
                           {"node",
                            "FILE",
                            "--name",
                            "h2",
                            "--set",
                            "deadlines.join_ms=1000",
                            "--set",
                            "deadlines.connect_ms=1000"});
  BOOST_TEST((std::chrono::steady_clock::now() - begin < 6s));
  BOOST_TEST(ran.code == 5, ran.all());
  BOOST_TEST(ran.mentions("node 'h1' at 10.77.0.1"), ran.all());
  BOOST_TEST(ran.mentions("is a firewall between?"), ran.all());
  const auto client =
    lab.run(2, {"generate", "FILE", "--prompt", "x", "--set", "deadlines.connect_ms=1000"});
  BOOST_TEST(client.code == 5, client.all());
  BOOST_TEST(client.mentions("is a firewall between?"), client.all());
}

BOOST_AUTO_TEST_CASE(hosts_that_reach_the_head_but_not_each_other_are_named) {
  auto shape = shape_of(3, 1);
  shape.more = "[deadlines]\nconnect_ms = 1000\njoin_ms = 4000\n";
  const host_lab lab{shape};
  lab.network().ip(2,
                   {"neigh",
                    "replace",
                    lan::address(3),
                    "lladdr",
                    "02:00:00:00:00:77",
                    "dev",
                    "net0",
                    "nud",
                    "permanent"});
  auto second = lab.start_node(2);
  auto third = lab.start_node(3);
  const auto head = lab.run(1, {"node", "FILE", "--name", "h1"}, 20);
  BOOST_TEST(head.code == 5, head.all());
  BOOST_TEST(head.mentions("not linked: rank 1 on node 'h2' at 10.77.0.2, "
                           "rank 2 on node 'h3' at 10.77.0.3"),
             head.all());
  BOOST_TEST(head.mentions("the ranks did not meet within 4000 ms (deadlines.join_ms)"),
             head.all());
  for (auto* other : {&second, &third}) { // who restarts what failed must see that it did
    const auto ended = other->wait(5s);
    BOOST_TEST((ended && ended->exited && ended->code == 5));
  }
}

BOOST_AUTO_TEST_CASE(nobody_listens_to_a_network_without_a_secret) {
  auto shape = shape_of(3, 1);
  shape.secured = false;
  const host_lab lab{shape};
  for (std::size_t host = 1; host <= 2; ++host) {
    const auto ran = lab.run(host, {"node", "FILE", "--name", "h" + std::to_string(host)});
    BOOST_TEST(ran.code == 2, ran.all());
    BOOST_TEST(ran.mentions("security.secret_file"), ran.all());
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(F09_ranks_on_three_loopback_addresses_bind_their_own) {
  std::string text = "[model]\npath = \"" + model_in_files().folder().string()
                     + "\"\n\n[parallel]\npipeline = 3\n\n";
  for (int n = 1; n <= 3; ++n)
    text += "[[node]]\nname = \"n" + std::to_string(n) + "\"\nbind = \"127.0.0." + std::to_string(n)
            + "\"\nthreads = 1\ntransports = \"tcp,self\"\n\n";
  const cluster three{text};
  check_same_bits(three.generate(prompts()));
}
