// What a cluster says to strangers, and what becomes of its settings once one joins.
#include "actors/plan/guest_settings.hpp"
#include "actors/plan/settings_digest.hpp"
#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;
using namespace troupe::actors;

namespace {

cluster_settings parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto settings = parse_cluster_text(text, "c.toml", overrides);
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  return *std::move(settings);
}

/// Two nodes of two tensor ranks each, with all that hosts have for themselves.
cluster_settings pair() {
  return parse("[model]\npath = \"/models/a\"\ncontext = 512\n"
               "[cluster]\nhead = \"b\"\n"
               "[parallel]\npipeline = 2\ntensor = 2\nlayers = [[0, 1], [1, 6]]\n"
               "[state]\nmax_sequences = 3\n"
               "[generate]\nseed = 7\n"
               "[recovery]\njournal = \"j.db\"\n"
               "[[node]]\nname = \"a\"\nranks = 2\nmodel_path = \"/disk/a\"\nport = 7000\n"
               "[[node]]\nname = \"b\"\nranks = 2\nport = 7001\n");
}

const std::string guest = "[[node]]\nname = 'g'\nranks = 2\nthreads = 3\n";

} // namespace

BOOST_AUTO_TEST_CASE(what_strangers_are_told_has_the_digest_of_the_file_and_no_path) {
  const auto settings = pair();
  const auto text = shared_cluster_text(settings);
  BOOST_TEST(text.find("/models/a") == std::string::npos, text);
  BOOST_TEST(text.find("/disk/a") == std::string::npos, text);
  BOOST_TEST(text.find("seed") == std::string::npos, text);
  const auto read = parse(text, {"model.path='/elsewhere'"});
  BOOST_TEST(settings_digest(read) == settings_digest(settings));
  BOOST_TEST(read.nodes[1].port == 7001u);
  BOOST_TEST(read.head_index() == 1u);
}

BOOST_AUTO_TEST_CASE(a_guest_stands_behind_the_nodes_of_the_file_and_makes_a_stage_more) {
  const auto grown = with_guest(pair(), guest);
  BOOST_REQUIRE_MESSAGE(grown, (grown ? "" : grown.error().what));
  BOOST_TEST(grown->nodes.size() == 3u);
  BOOST_TEST(grown->nodes[2].name == "g");
  BOOST_TEST(grown->nodes[2].threads == 3u);
  BOOST_TEST(grown->nodes[0].model_path == "/disk/a");
  BOOST_TEST(grown->head_index() == 1u);
  const auto again = with_guest(*grown, "[[node]]\nname = 'g'\nranks = 2\nspare = true\n");
  BOOST_REQUIRE_MESSAGE(again, (again ? "" : again.error().what));
  BOOST_TEST(again->nodes.size() == 3u);
  BOOST_TEST(again->nodes[2].spare);
}

BOOST_AUTO_TEST_CASE(a_guest_that_does_not_fit_is_refused_with_the_reason) {
  const auto odd = with_guest(pair(), "[[node]]\nname = 'g'\n");
  BOOST_REQUIRE(!odd);
  BOOST_TEST(odd.error().what.find("makes no whole stage of 2 tensor ranks") != std::string::npos,
             odd.error().what);
  const auto taken = with_guest(pair(), "[[node]]\nname = 'g'\nranks = 2\nport = 7000\n");
  BOOST_REQUIRE(!taken);
  BOOST_TEST(taken.error().what.find("same address and port") != std::string::npos,
             taken.error().what);
  BOOST_TEST(!with_guest(pair(), "nonsense"));
  BOOST_TEST(!with_guest(pair(), "[[node]]\nname = 'g'\nranks = 2\n[security]\nkey = 'x'\n"));
}
