#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;

namespace {

struct node_text {
  std::string name;
  std::string lines;
};

std::string
file(const std::string& head, const std::vector<node_text>& nodes, const std::string& tail = {}) {
  auto text = "[model]\npath = \"demo\"\n" + head + "\n";
  for (const auto& node : nodes)
    text += "[[node]]\nname = \"" + node.name + "\"\n" + node.lines + "\n";
  return text + tail;
}

std::string mistake(const std::string& text) {
  auto settings = parse_cluster_text(text, "c.toml");
  BOOST_REQUIRE_MESSAGE(!settings, "accepted: " << text);
  BOOST_TEST((settings.error().code == errc::invalid_config));
  return settings.error().what;
}

void must_work(const std::string& text) {
  auto settings = parse_cluster_text(text, "c.toml");
  BOOST_TEST(settings.has_value(), (settings ? "" : settings.error().what));
}

#define MUST_SAY(text, part)                                                                       \
  do {                                                                                             \
    const std::string said = text;                                                                 \
    BOOST_TEST((said.find(part) != std::string::npos),                                             \
               "\"" << (part) << "\" is missing in:\n"                                             \
                    << said);                                                                      \
  } while (false)

const std::string secret = "[security]\nsecret_file = \"s\"\n";

} // namespace

BOOST_AUTO_TEST_CASE(A19_the_sum_of_ranks_is_printed) {
  MUST_SAY(mistake(file("[parallel]\npipeline = 2\ntensor = 2", {{"a", ""}, {"b", ""}, {"c", ""}})),
           "3 nodes with 3 ranks in all, but pipeline 2 x tensor 2 needs 4");
  MUST_SAY(mistake(file("[parallel]\npipeline = 2\ntensor = 2", {{"a", "ranks = 5"}})),
           "1 node with 5 ranks in all, but pipeline 2 x tensor 2 needs 4");
  MUST_SAY(mistake(file("[parallel]\npipeline = 2", {{"a", ""}})), "c.toml:4: ");
  MUST_SAY(mistake(file("", {{"a", ""}, {"b", ""}})), "pipeline 1 x tensor 1 needs 1");
  must_work(file("[parallel]\npipeline = 2\ntensor = 2", {{"a", ""}, {"b", "ranks = 3"}}));
}

BOOST_AUTO_TEST_CASE(rule_01_data_parallelism_is_refused) {
  MUST_SAY(mistake(file("[parallel]\ndata = 2", {{"a", ""}, {"b", ""}})),
           "data parallelism is not implemented");
  MUST_SAY(mistake(file("[parallel]\npipeline = 65536\ntensor = 65536", {{"a", ""}})),
           "the product of the axes");
}

BOOST_AUTO_TEST_CASE(A07_two_nodes_of_one_name_are_refused_with_both_addresses) {
  const auto what =
    mistake(file("[parallel]\ntensor = 2",
                 {{"same", "bind = \"10.0.0.1\"\nport = 7000"}, {"same", "bind = \"10.0.0.2\""}},
                 secret));
  MUST_SAY(what, "two nodes are called \"same\": one at 10.0.0.1, one at 10.0.0.2");
  MUST_SAY(what, "c.toml:10: ");
}

BOOST_AUTO_TEST_CASE(A15_one_address_under_two_names) {
  const std::string pair = "[parallel]\ntensor = 2";
  // Different ports, or free ones: works, whatever the names of the address.
  must_work(file(pair, {{"a", "bind = \"127.0.0.1\""}, {"b", "bind = \"localhost\""}}));
  must_work(
    file(pair,
         {{"a", "bind = \"127.0.0.1\"\nport = 7000"}, {"b", "bind = \"localhost\"\nport = 7001"}}));
  // Other addresses of the same host are other places.
  must_work(
    file(pair,
         {{"a", "bind = \"127.0.0.1\"\nport = 7000"}, {"b", "bind = \"127.0.0.2\"\nport = 7000"}}));
  // The same port on one address: refused, whatever its spelling.
  for (const auto& [one, two] : {std::pair{"127.0.0.1", "localhost"},
                                 {"::1", "0:0:0:0:0:0:0:1"},
                                 {"127.0.0.1", "::ffff:127.0.0.1"},
                                 {"127.0.0.1", "127.0.0.1"}})
    MUST_SAY(mistake(file(pair,
                          {{"a", "bind = \"" + std::string{one} + "\"\nport = 7000"},
                           {"b", "bind = \"" + std::string{two} + "\"\nport = 7000"}})),
             "nodes a and b have the same address and port");
  // Every interface of two hosts is no collision; of one host it is.
  const std::string any = "bind = \"0.0.0.0\"\nport = 7000\nadvertise = ";
  must_work(file(pair, {{"a", any + "\"10.0.0.1\""}, {"b", any + "\"10.0.0.2\""}}, secret));
  MUST_SAY(mistake(file(pair, {{"a", any + "\"10.0.0.1\""}, {"b", any + "\"10.0.0.1\""}}, secret)),
           "same address and port: 10.0.0.1:7000 and 10.0.0.1:7000");
}

BOOST_AUTO_TEST_CASE(the_head_must_be_a_node) {
  MUST_SAY(mistake(file("[cluster]\nhead = \"fornt\"", {{"front", ""}})),
           "the head is \"fornt\", which is not a node");
  MUST_SAY(mistake(file("[cluster]\nhead = \"fornt\"", {{"front", ""}})),
           "did you mean \"front\"?");
  MUST_SAY(mistake(file("[cluster]\nhead = \"\"", {{"a", ""}})), "which is not a node");
}

BOOST_AUTO_TEST_CASE(names_can_be_typed) {
  for (const auto* name : {"", "a b", "a.b", "a[0]", "a/b", "\\u00e9", "a\\nb"})
    MUST_SAY(mistake(file("", {{name, ""}})), "not a name for a node");
  MUST_SAY(mistake(file("", {{std::string(64, 'x'), ""}})), "1 to 63 letters");
  MUST_SAY(mistake(file("[cluster]\nname = \"a b\"", {{"a", ""}})), "not a name for a cluster");
}

BOOST_AUTO_TEST_CASE(addresses_must_be_addresses) {
  MUST_SAY(mistake(file("", {{"a", "bind = \"10.0.0.300\""}})), "not an IPv4 address");
  MUST_SAY(mistake(file("", {{"a", "bind = \"127.0.0.1:7000\""}})), "a port has a key of its own");
  MUST_SAY(mistake(file("", {{"a", "bind = \"\""}})), "the address is empty");
  MUST_SAY(mistake(file("", {{"a", "bind = \"0.0.0.0\"\nport = 7000"}}, secret)),
           "say in `advertise`");
  MUST_SAY(mistake(file("", {{"a", "advertise = \"::\"\nport = 7000"}}, secret)),
           "the others cannot reach node a at \"::\"");
  MUST_SAY(mistake(file("", {{"a", "advertise = \"a b\""}}, secret)), "neither an address");
}

BOOST_AUTO_TEST_CASE(no_door_to_a_network_without_a_lock) {
  for (const auto* lines : {"bind = \"10.0.0.1\"",
                            "bind = \"node-1\"",
                            "bind = \"::\"\nadvertise = \"::1\"",
                            "advertise = \"10.0.0.1\"",
                            "bind = \"0.0.0.0\"\nadvertise = \"127.0.0.1\""}) {
    const auto what = mistake(file("", {{"a", std::string{lines} + "\nport = 7000"}}));
    MUST_SAY(what, "without a secret or certificates");
    MUST_SAY(what, "security.secret_file");
    must_work(file("", {{"a", std::string{lines} + "\nport = 7000"}}, secret));
  }
  must_work(file("", {{"a", "bind = \"127.1.2.3\""}}));
  must_work(file("", {{"a", "bind = \"::1\""}}));
}

BOOST_AUTO_TEST_CASE(certificates_come_complete) {
  const auto with = [](const std::string& keys) {
    return file("", {{"a", ""}}, "[security]\n" + keys);
  };
  MUST_SAY(mistake(with("certificate = \"c\"\nauthority = \"a\"\n")), "[security] has no key");
  MUST_SAY(mistake(with("key = \"k\"\nauthority = \"a\"\n")), "[security] has no certificate");
  MUST_SAY(mistake(with("key = \"k\"\ncertificate = \"c\"\n")), "[security] has no authority");
  MUST_SAY(mistake(with("authority = \"k\"\n")), "[security] has no key");
  must_work(with("certificate = \"c\"\nkey = \"k\"\nauthority = \"a\"\n"));
}

BOOST_AUTO_TEST_CASE(a_head_that_others_must_find_needs_a_port) {
  MUST_SAY(mistake(file("", {{"a", "bind = \"10.0.0.1\""}}, secret)), "the head a needs a port");
  must_work(file("[cluster]\nhead = \"b\"\n[parallel]\npipeline = 2",
                 {{"a", "bind = \"10.0.0.1\""}, {"b", "bind = \"10.0.0.2\"\nport = 7000"}},
                 secret));
}

BOOST_AUTO_TEST_CASE(layer_ranges_are_contiguous_from_zero_and_one_a_stage) {
  const auto with = [](const std::string& layers) {
    return file("[parallel]\npipeline = 2\nlayers = " + layers, {{"a", "ranks = 2"}});
  };
  must_work(with("[[0, 4], [4, 6]]"));
  must_work(with("[]"));
  MUST_SAY(mistake(with("[[0, 4], [5, 6]]")), "stage 1 begins at layer 5");
  MUST_SAY(mistake(with("[[0, 4], [3, 6]]")), "stage 1 begins at layer 3");
  MUST_SAY(mistake(with("[[1, 4], [4, 6]]")), "the first stage begins at layer 0");
  MUST_SAY(mistake(with("[[0, 4], [4, 4]]")), "stage 1 has no layers");
  MUST_SAY(mistake(with("[[0, 4], [4, 2]]")), "stage 1 has no layers");
  MUST_SAY(mistake(with("[[0, -4], [-4, 2]]")), "stage 0 has no layers");
  MUST_SAY(mistake(with("[[0, 6]]")), "layers names 1 stages, but pipeline is 2");
  MUST_SAY(mistake(with("[[0, 2], [2, 4], [4, 6]]")), "layers names 3 stages, but pipeline is 2");
  for (const auto* layers : {"[0, 4]",
                             "[[0], [1]]",
                             "[[0, 1, 2], [2, 3]]",
                             "[[0, 1.5], [2, 3]]",
                             "[\"0-3\", \"4-5\"]",
                             "4",
                             "\"0-3,4-5\""})
    MUST_SAY(mistake(with(layers)), "must be a list with the first and the end layer");
}

BOOST_AUTO_TEST_CASE(amounts_that_contradict_each_other) {
  MUST_SAY(mistake(file("[schedule]\nprefill_chunk = 300", {{"a", ""}})), "step_tokens = 256");
  MUST_SAY(mistake(file("context = 100\n[limits]\nmax_prompt_tokens = 101", {{"a", ""}})),
           "the context holds 100");
  MUST_SAY(mistake(file("[limits]\nmax_new_tokens = 100", {{"a", ""}})),
           "generate.max_tokens is 128, but limits.max_new_tokens is 100");
  MUST_SAY(mistake(file("[deadlines]\nprogress_ms = 60000", {{"a", ""}})), "progress_ms < step_ms");
}
