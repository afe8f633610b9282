// [[fault]]: places and moments, and what is said about those that cannot be.

#include "config/fault.hpp"
#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace troupe;

namespace {

constexpr std::string_view four_ranks = R"(
[model]
path = "demo"
[parallel]
pipeline = 2
tensor = 2
[[node]]
name = "a"
ranks = 2
[[node]]
name = "b"
[[node]]
name = "c"
)";

std::string with(const std::string& fault) {
  return std::string{four_ranks} + "[[fault]]\n" + fault;
}

fault read(const std::string& text) {
  const auto settings = parse_cluster_text(with(text), "c.toml");
  BOOST_REQUIRE_MESSAGE(settings, (settings ? "" : settings.error().what));
  mistakes found;
  auto all = read_faults(*settings, found);
  BOOST_REQUIRE(all.size() == 1u);
  return all[0];
}

std::string refusal(const std::string& text, std::string_view cluster = four_ranks) {
  const auto settings = parse_cluster_text(std::string{cluster} + "[[fault]]\n" + text, "c.toml");
  return settings ? "" : settings.error().what;
}

void refused(const std::string& text, const std::string& words) {
  BOOST_TEST_CONTEXT(text) {
    const auto told = refusal(text);
    BOOST_TEST(told.find(words) != std::string::npos, told);
    BOOST_TEST(told.find("^") != std::string::npos, told); // It points at the place.
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(places_are_read) {
  using spots = std::vector<fault_spot>;
  BOOST_CHECK((read("what = \"kill\"\nwhere = \"rank 3\"").spots == spots{{3, std::nullopt}}));
  BOOST_CHECK((read("what = \"kill\"\nwhere = \"conductor\"").spots
               == spots{{conductor_spot, std::nullopt}}));
  BOOST_CHECK((read("what = \"stop\"\nwhere = \"node a\"").spots
               == spots{{0, std::nullopt}, {1, std::nullopt}}));
  BOOST_CHECK((read("what = \"drop\"\nwhere = \"rank 0 -> rank 2\"").spots == spots{{0, 2}}));
  BOOST_CHECK(
    (read("what = \"cut\"\nwhere = \"rank 1 <-> rank 3\"").spots == spots{{1, 3}, {3, 1}}));
  BOOST_CHECK(
    (read("what = \"drop\"\nwhere = \"rank 2 -> conductor\"").spots == spots{{2, conductor_spot}}));
}

BOOST_AUTO_TEST_CASE(a_whole_node_is_stopped_as_a_process) {
  BOOST_TEST(read("what = \"stop\"\nwhere = \"node b\"").whole_process);
  BOOST_TEST(!read("what = \"stop\"\nwhere = \"rank 2\"").whole_process);
}

BOOST_AUTO_TEST_CASE(any_is_chosen_by_the_seed_alone) {
  std::set<std::uint32_t> found;
  for (int seed = 0; seed < 40; ++seed) {
    const auto text = "what = \"kill\"\nwhere = \"any\"\nseed = " + std::to_string(seed);
    found.insert(read(text).spots.at(0).at);
    BOOST_CHECK(read(text).spots == read(text).spots);
  }
  BOOST_TEST(found.size() == 4u);
  // The only boundary that travels between processes goes from node a to b and to c.
  const auto link = read("what = \"drop\"\nwhere = \"any link\"\nseed = 5").spots.at(0);
  BOOST_TEST((link == fault_spot{0, 2} || link == fault_spot{1, 3}));
}

BOOST_AUTO_TEST_CASE(moments_are_read) {
  const auto at = [](const std::string& when, const std::string& what = "kill") {
    return read("what = \"" + what + "\"\nwhere = \"rank 0\"\nwhen = \"" + when + "\"").when;
  };
  BOOST_TEST(at("step 20").count == 20u);
  BOOST_TEST((at("step 20").event == fault_event::step));
  BOOST_TEST((at("step 20 layer 0").layer == 0u));
  BOOST_TEST((at("message 7").event == fault_event::message));
  BOOST_TEST((at("call 3", "refuse_allocation").event == fault_event::call));
  BOOST_TEST(at("phase joining 2").phase == "joining");
  BOOST_TEST(at("phase joining 2").count == 2u);
  BOOST_TEST(at("phase joining").count == 1u);
  BOOST_TEST(at("load 50").count == 50u);
  BOOST_TEST((at("  load ").event == fault_event::load));
}

BOOST_AUTO_TEST_CASE(places_that_are_none_are_refused) {
  refused("what = \"kill\"\nwhere = \"rank 4\"", "ranks 0 to 3 exist");
  refused("what = \"kill\"\nwhere = \"rank\"", "is no place");
  refused("what = \"kill\"\nwhere = \"node d\"", "the nodes are a, b, c");
  refused("what = \"kill\"\nwhere = \"\"", "is no place");
  refused("what = \"drop\"\nwhere = \"rank 0 -> rank 3\"", "sends no frames to rank 3");
  refused("what = \"drop\"\nwhere = \"rank 0 -> rank 0\"", "sends no frames");
  refused("what = \"drop\"\nwhere = \"rank 0 -> rank 1\"", "one process, node a");
  refused("what = \"drop\"\nwhere = \"rank 0 -> conductor\"", "one process, node a");
  refused("what = \"kill\"\nwhere = \"rank 0 -> rank 2\"", "does not meet a link");
  refused("what = \"nan\"\nwhere = \"conductor\"", "the conductor has no nan");
}

BOOST_AUTO_TEST_CASE(moments_that_never_come_are_refused) {
  refused("what = \"kill\"\nwhen = \"step 0\"", "counted from 1");
  refused("what = \"kill\"\nwhen = \"phase ready 0\"", "counted from 1");
  refused("what = \"kill\"\nwhen = \"load 101\"", "never 101 %");
  refused("what = \"kill\"\nwhen = \"soon\"", "is no moment");
  refused("what = \"kill\"\nwhen = \"5 s\"", "is no moment");
  refused("what = \"kill\"\nwhen = \"step -1\"", "is no moment");
  refused("what = \"kill\"\nwhen = \"call 3\"", "kill has no such moment");
  refused("what = \"nan\"\nwhen = \"message 1\"", "a step or a layer of it would work");
  refused("what = \"drop\"\nwhen = \"step 2 layer 1\"", "a step or a message would work");
  refused("what = \"wrong_length\"\nwhen = \"load\"", "a call would work");
  refused("what = \"kill\"\nwhere = \"conductor\"\nwhen = \"load\"", "loads no layers");
}

BOOST_AUTO_TEST_CASE(other_fields_are_checked_too) {
  refused("what = \"explode\"", "must be one of");
  refused("what = \"kil\"", "did you mean \"kill\"");
  refused("what = \"kill\"\nwen = \"step 3\"", "did you mean \"when\"");
  refused("what = \"kill\"\ntimes = 0", "from 1");
  refused("what = \"slow\"\nfactor = 0.5", "factor");
  refused("what = \"wrong_length\"\nlength = \"n*2\"", "is no length");
  refused("where = \"any\"", "must have the key \"what\"");
  constexpr std::string_view one = "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n";
  BOOST_TEST(refusal("what = \"wrong_length\"", one).find("parallel.tensor is 1")
             != std::string::npos);
  BOOST_TEST(refusal("what = \"drop\"\nwhere = \"any link\"", one).find("no boundary travels")
             != std::string::npos);
  const auto table = parse_cluster_text(std::string{one} + "[fault]\nwhat = \"kill\"\n", "c.toml");
  BOOST_REQUIRE(!table);
  BOOST_TEST(table.error().what.find("write [[fault]]") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(each_wrong_fault_is_told) {
  const auto told = refusal("what = \"kill\"\nwhere = \"rank 9\"\n[[fault]]\nwhat = \"kill\"\n"
                            "when = \"never\"\n");
  BOOST_TEST(told.find("there is no rank 9") != std::string::npos, told);
  BOOST_TEST(told.find("is no moment") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(lengths_are_those_of_the_group_changed) {
  BOOST_TEST((length_of("n-2", 8) == 6u));
  BOOST_TEST((length_of("n-2", 1) == 0u));
  BOOST_TEST((length_of("n+2", 8) == 10u));
  BOOST_TEST((length_of("10n", 8) == 80u));
  for (const auto* wrong : {"", "n", "n2", "n-", "-2", "n*2", "n--2", "99999999999n"})
    BOOST_TEST(!length_of(wrong, 8), wrong);
}

BOOST_AUTO_TEST_CASE(an_order_names_its_option) {
  const auto settings = parse_cluster_text(four_ranks, "c.toml");
  BOOST_REQUIRE(settings);
  fault_settings wanted;
  wanted.where = "rank 8";
  const auto refused_order = read_fault(*settings, wanted);
  BOOST_REQUIRE(!refused_order);
  BOOST_TEST(refused_order.error().what.starts_with("--where: there is no rank 8"));
  wanted.where = "rank 2";
  const auto taken = read_fault(*settings, wanted);
  BOOST_REQUIRE(taken);
  BOOST_TEST(taken->name == "injected");
}
