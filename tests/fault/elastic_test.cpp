// A cluster that grows and shrinks while it works: nodes come, leave, are lost and replaced.

#include "tests/paths.hpp"
#include "tests/support/crew.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/rate_plot.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

const served_model& small_model() {
  static const served_model model{[] {
    compute::random_model wanted;
    wanted.layers = 5;
    return wanted;
  }()};
  return model;
}

cluster_shape elastic(std::size_t pipeline, std::size_t least, const std::string& more = {}) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = pipeline;
  shape.more = "least_stages = " + std::to_string(least)
               + "\n[recovery]\nshrink_after_ms = 300\n[cluster]\nhead = \"n0\"\n" + more;
  return shape;
}

/// What the requests give where nothing ever happens.
std::vector<told_answer> calm(const std::vector<std::string>& lines) {
  cluster_shape shape;
  shape.model = small_model().folder();
  return cluster{shape}.generate(lines);
}

std::string text_of(const cluster& where, const std::string& name, const std::string& value) {
  const auto told = where.run({"config", "FILE"}, 10);
  for (const auto& line : told.lines)
    if (line.starts_with(name + " "))
      return line.find(value) != std::string::npos ? value : line;
  return told.all();
}

} // namespace

BOOST_AUTO_TEST_CASE(a_cluster_grows_from_one_to_four_ranks_and_back_without_losing_a_token) {
  const auto lines = some_requests(8, 1700);
  const auto expected = calm(lines);
  const cluster four{elastic(4, 1)};
  BOOST_TEST(text_of(four, "parallel.least_stages", "1") == "1");
  BOOST_TEST(text_of(four, "recovery.shrink_after_ms", "300") == "300");
  crew nodes{four, 1};
  BOOST_REQUIRE(nodes.serves_with(1, 20s));
  using often = background_requests::often;
  background_requests requests{four, lines, often::again};
  background_requests others{four, lines, often::again}; // wait meanwhile
  BOOST_REQUIRE(status_becomes(four, "\"running\":8", 10s));
  rate_plot rate{four};
  const auto stay = [] { std::this_thread::sleep_for(700ms); }; // for the picture
  stay();
  for (std::size_t next = 1; next < 4; ++next) {
    nodes.start(next);
    BOOST_REQUIRE(nodes.serves_with(next + 1, 20s));
    stay();
  }
  // The state went with the layers: nothing was computed twice but what was in flight.
  const auto moved_well = [&] {
    const auto gauges = nodes.gauges();
    for (const auto& gauge : gauges)
      BOOST_TEST(gauge.at("rows_replayed") == 0u);
    return gauges;
  };
  const auto sent_while_growing = moved_well().at(0).at("state_bytes_sent");
  BOOST_TEST(sent_while_growing > 0u);
  for (std::size_t last = 3; last > 0; --last) {
    const auto drained = four.run({"drain", "FILE", "--node", "n" + std::to_string(last)}, 30);
    BOOST_TEST(drained.code == 0, drained.all());
    const auto ended = nodes.node(last).wait(5s);
    BOOST_TEST((ended && ended->exited && ended->code == 0));
    BOOST_TEST(nodes.serves_with(last, 5s));
    stay();
  }
  BOOST_TEST(moved_well().at(0).at("state_bytes_sent") == sent_while_growing); // it only got some
  rate.write(std::filesystem::path{TROUPE_BINARY_DIR} / "growing.svg"); // docs/growing.svg is one
  BOOST_TEST(rate.tokens() > 0);
  requests.compare(expected);
  others.compare(expected);
}

BOOST_AUTO_TEST_CASE(survivors_go_on_without_a_lost_node_and_take_it_back) {
  const auto lines = some_requests(3, 1800);
  const auto expected = calm(lines);
  const cluster three{elastic(3, 2)};
  crew nodes{three, 3};
  background_requests requests{three, lines};
  BOOST_REQUIRE(status_becomes(three, "\"running\":3", 10s));
  nodes.kill(1);
  BOOST_REQUIRE(nodes.serves_with(2, 20s));
  nodes.start(1);
  BOOST_REQUIRE(nodes.serves_with(3, 20s));
  requests.compare(expected);
  const auto refused = three.run({"drain", "FILE", "--node", "n0"}, 10);
  BOOST_TEST(refused.code != 0);
  BOOST_TEST(refused.mentions("is the head"), refused.all());
  BOOST_TEST(three.run({"drain", "FILE", "--node", "n2"}, 30).code == 0);
  const auto too_few = three.run({"drain", "FILE", "--node", "n1"}, 10);
  BOOST_TEST(too_few.code != 0);
  BOOST_TEST(too_few.mentions("would have 1 stages, 2 are the least"), too_few.all());
}

BOOST_AUTO_TEST_CASE(E39_stages_whose_speed_varies_keep_their_layers) {
  std::string noise;
  for (const auto* where : {"rank 0", "rank 1", "rank 2"}) // one after the other, a fifth slower
    for (const auto* when : {"step 10", "step 100", "step 300", "step 600"})
      noise += std::string{"[[fault]]\nwhat = \"slow\"\nwhere = \""} + where + "\"\nwhen = \""
               + when + "\"\nfactor = 1.2\nsteps = 40\n";
  const cluster three{elastic(3, 1, noise)};
  crew nodes{three, 3};
  const auto lines = some_requests(2, 1200);
  const auto expected = calm(lines);
  background_requests requests{three, lines};
  requests.compare(expected);
  BOOST_TEST(nodes.epoch() == 1u);
  BOOST_TEST(nodes.serves_with(3, 5s));
}

BOOST_AUTO_TEST_CASE(A11_fewer_nodes_serve_where_the_config_allows_it_and_the_status_says_so) {
  const auto lines = some_requests(1, 200);
  const auto expected = calm(lines);
  const cluster two{elastic(2, 1)};
  crew nodes{two, 2};
  nodes.kill(1);
  BOOST_REQUIRE(nodes.serves_with(1, 20s));
  const auto told = two.run({"status", "FILE"}, 10);
  BOOST_TEST(told.mentions("lost"), told.all());
  BOOST_TEST(told.mentions("its process ended"), told.all());
  background_requests requests{two, lines};
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(a_spare_takes_the_place_of_a_lost_node) {
  const auto lines = some_requests(3, 1500);
  const auto expected = calm(lines);
  const cluster trio{elastic(2, 0, "[[node]]\nname = \"n2\"\nspare = true\n")};
  BOOST_TEST(trio.run({"config", "FILE", "--set", "node.n2.spare=true"}, 10).mentions("--set"));
  crew nodes{trio, 3};
  BOOST_TEST(status_becomes(trio, "\"state\":\"spare\"", 10s));
  background_requests requests{trio, lines};
  BOOST_REQUIRE(status_becomes(trio, "\"running\":3", 10s));
  nodes.kill(1);
  BOOST_REQUIRE(status_becomes(trio, "\"state\":\"lost\"", 5s));
  BOOST_REQUIRE(nodes.serves_with(2, 20s));
  nodes.start(1); // comes back, and is the spare now
  BOOST_TEST(status_becomes(trio, "\"state\":\"spare\"", 10s));
  nodes.kill(2);
  BOOST_REQUIRE(status_becomes(trio, "\"state\":\"lost\"", 5s));
  BOOST_REQUIRE(nodes.serves_with(2, 20s));
  requests.compare(expected);
}

BOOST_AUTO_TEST_CASE(a_guest_joins_leaves_comes_back_and_dies_without_a_token_lost) {
  const auto lines = some_requests(3, 2400);
  const auto expected = calm(lines);
  const auto port = std::to_string(find_free_port());
  auto shape = elastic(1, 0);
  shape.node_more = "port = " + port;
  const cluster one{shape};
  crew nodes{one, 1};
  background_requests requests{one, lines};
  BOOST_REQUIRE(status_becomes(one, "\"running\":3", 10s));
  const auto head = "127.0.0.1:" + port;
  const auto join = [&](const std::string& name, const std::filesystem::path& model) {
    return std::vector<std::string>{"join", head, "--name", name, "--model", model.string()};
  };
  auto guest = one.start(join("guest", small_model().folder()));
  BOOST_REQUIRE(nodes.serves_with(2, 20s));
  auto second = one.start(join("second", small_model().folder()));
  BOOST_REQUIRE(nodes.serves_with(3, 20s));
  BOOST_TEST(one.run({"drain", "FILE", "--node", "guest"}, 30).code == 0);
  BOOST_TEST((guest.wait(5s) && nodes.serves_with(2, 5s)));
  guest = one.start(join("guest", small_model().folder()));
  BOOST_REQUIRE(nodes.serves_with(3, 20s));
  guest.signal(SIGKILL);
  BOOST_TEST(nodes.serves_with(2, 20s, nodes.epoch())); // nobody waits for it
  const auto taken = one.run(join("n0", small_model().folder()), 20);
  BOOST_TEST(taken.code == 2);
  BOOST_TEST(taken.mentions("has a node 'n0' already"), taken.all());
  auto smaller = compute::random_model{};
  smaller.layers = 4;
  const served_model other{smaller};
  const auto foreign = one.run(join("stranger", other.folder()), 20);
  BOOST_TEST(foreign.code == 6);
  BOOST_TEST(foreign.mentions("model (digest of config and tensor table)"), foreign.all());
  requests.compare(expected);
}
