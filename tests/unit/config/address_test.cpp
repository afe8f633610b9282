#include "config/address.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;

BOOST_AUTO_TEST_CASE(loopback_in_all_its_spellings) {
  for (const auto* address : {"127.0.0.1",
                              "127.0.0.2",
                              "127.255.255.254",
                              "::1",
                              "0:0:0:0:0:0:0:1",
                              "::ffff:127.0.0.1",
                              "localhost",
                              "LOCALHOST"})
    BOOST_TEST(is_loopback(address), address);
  for (const auto* address : {"128.0.0.1",
                              "10.0.0.1",
                              "0.0.0.0",
                              "::",
                              "::2",
                              "fe80::1",
                              "::ffff:10.0.0.1",
                              "example.org",
                              "localhost.example.org",
                              ""})
    BOOST_TEST(!is_loopback(address), address);
}

BOOST_AUTO_TEST_CASE(every_interface_is_no_place_to_reach) {
  for (const auto* address : {"0.0.0.0", "::", "::ffff:0.0.0.0"})
    BOOST_TEST(is_unspecified(address), address);
  for (const auto* address : {"0.0.0.1", "::1", "host"})
    BOOST_TEST(!is_unspecified(address), address);
}

BOOST_AUTO_TEST_CASE(A15_one_address_has_one_spelling) {
  BOOST_TEST(canonical_address("0:0:0:0:0:0:0:1") == "::1");
  BOOST_TEST(canonical_address("::ffff:10.0.0.1") == "10.0.0.1");
  BOOST_TEST(canonical_address("Localhost") == "127.0.0.1");
  BOOST_TEST(canonical_address("Node-1.Example.ORG") == "node-1.example.org");
}

BOOST_AUTO_TEST_CASE(what_is_no_address_is_told) {
  for (const auto* address :
       {"10.0.0.1", "::1", "fe80::1", "node-1", "a.example.org", "node_2", "7of9"})
    BOOST_TEST(address_mistake(address) == "", address);
  for (const auto* address : {"",
                              "10.0.0.300",
                              "127.1",
                              "10.0.0.1:7000",
                              "[::1]",
                              "::1::",
                              "a b",
                              "-a",
                              "a..b",
                              ".a",
                              "http://a",
                              "a/b",
                              "10.0.0.1 "})
    BOOST_TEST(address_mistake(address) != "", address);
  BOOST_TEST(address_mistake(std::string(300, 'a')) != "");
}
