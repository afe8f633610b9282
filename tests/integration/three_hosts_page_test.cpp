// docs/three-hosts.md on one computer, as the page itself says that it can be read.

#include "tests/support/page_run.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::tests;

BOOST_AUTO_TEST_CASE(three_hosts_can_be_typed_on_one_computer) {
  using way = page_rule::way;
  page_run reader{
    "docs/three-hosts.md",
    {{"for host in beta gamma; do scp", way::skip, "one computer has one folder"},
     {"for host in alpha beta gamma; do\n  ssh", way::skip, "the nodes run in terminals"},
     {"#!/bin/bash", way::skip, "needs srun"},
     {"troupe doctor", way::hide, "the page shows what one of three hosts sees"},
     {"troupe status", way::repeat},
     {"troupe node cluster.toml --name alpha",
      way::stay,
      "",
      "serves with 3 ranks",
      {"troupe node cluster.toml --name beta", "troupe node cluster.toml --name gamma"}},
     {"troupe node cluster.toml --name gamma", way::stay}},
    {{"10.77.0.", "127.0.0."}, {"--hidden 768", "--hidden 96"}, {"--ffn 2048", "--ffn 128"}}};
  reader.before("7. When a host is lost", [&] { reader.kill_terminal("--name gamma"); });
  reader.read();
}
