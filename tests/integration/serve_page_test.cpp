// The page: what it is made of, who may see what, and all of it in a browser where there is one.

#include "tests/paths.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::string key = "a-key-of-sixteen-letters";

/// One process that asks for a key.
struct guarded_cluster {
  guarded_cluster() : one(shape(folder)), serving(one) {}

  static cluster_shape shape(const temporary_folder& folder) {
    const auto keys = folder.path() / "keys";
    std::ofstream(keys) << key << "\n";
    std::filesystem::permissions(keys, std::filesystem::perms::owner_read);
    auto made = in_one_process(small_model().folder(), 2);
    made.more += "\n[serve]\nenabled = true\nport = 0\nkeys_file = \"" + keys.string() + "\"\n";
    return made;
  }

  temporary_folder folder;
  cluster one;
  serving_cluster serving;
};

const guarded_cluster& shared() {
  static const guarded_cluster made;
  return made;
}

std::uint16_t port() {
  return shared().serving.http_port();
}

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++found;
  return found;
}

const std::vector<std::string> with_key{"Authorization: Bearer " + key};

} // namespace

BOOST_AUTO_TEST_CASE(the_page_is_one_file_that_asks_nobody_else) {
  const auto page = ask_http(port(), "/");
  BOOST_REQUIRE(page.status == 200u);
  BOOST_TEST(page.headers.at("content-type") == "text/html; charset=utf-8");
  const auto& html = page.body;
  BOOST_TEST(count(html, "<script>") == 6u); // Chart.js, and ours
  for (const auto* outside :
       {"<script src", "<link rel=\"stylesheet", "@import", "url(", "<iframe"})
    BOOST_TEST(count(html, outside) == 0u, outside);
  BOOST_TEST(count(html, "@PAGE_CSS@") + count(html, "_JS@") == 0u);
  const auto& policy = page.headers.at("content-security-policy");
  BOOST_TEST(policy.starts_with("default-src 'none'"));
  BOOST_TEST(count(policy, "'sha256-") == 7u); // each script, and the styles
  BOOST_TEST(count(policy, "unsafe") == 0u);
}

BOOST_AUTO_TEST_CASE(the_page_is_open_and_what_it_shows_is_behind_the_key) {
  for (const auto* path : {"/events", "/metrics", "/plan.svg"}) {
    BOOST_TEST(ask_http(port(), path).status == 401u, path);
    BOOST_TEST(ask_http(port(), path, "{}", with_key).status == 405u, path);
  }
  BOOST_TEST(ask_http(port(), "/metrics", {}, with_key).status == 200u);
  const auto plan = ask_http(port(), "/plan.svg", {}, with_key);
  BOOST_TEST(plan.headers.at("content-type") == "image/svg+xml");
  BOOST_TEST(plan.body.starts_with("<svg"));
  const auto html = ask_http(port(), "/").body;
  BOOST_TEST(count(html, key) == 0u);
  BOOST_TEST(count(html, shared().folder.path().string()) == 0u);
}

BOOST_AUTO_TEST_CASE(events_come_at_once_and_then_again_and_again) {
  http_socket watching(port());
  watching.ask("/events", {}, with_key);
  BOOST_REQUIRE(watching.receive_header());
  json last;
  for (int i = 0; i < 3; ++i) {
    const auto told = json::parse(watching.next_event(5s).value_or(""), nullptr, false);
    BOOST_REQUIRE(told.is_object());
    BOOST_TEST(told.at("ready") == true);
    BOOST_TEST(told.at("ranks").size() == 2u);
    if (!last.is_null())
      BOOST_TEST(told.at("at_ms") >= last.at("at_ms"));
    last = told;
  }
}

BOOST_AUTO_TEST_CASE(so_many_may_watch_and_no_more_and_those_who_leave_make_room) {
  std::vector<http_socket> watching;
  for (int i = 0; i < 64; ++i) {
    watching.emplace_back(port());
    watching.back().ask("/events", {}, with_key);
    const auto header = watching.back().receive_header();
    BOOST_REQUIRE(header);
    BOOST_REQUIRE(header->status == 200u);
  }
  BOOST_TEST(ask_http(port(), "/events", {}, with_key).status == 503u);
  for (int i = 0; i < 3; ++i) { // who asks for the header alone takes no place
    http_socket looking(port());
    looking.send("HEAD /events HTTP/1.1\r\nHost: localhost\r\n" + with_key.front() + "\r\n\r\n");
    const auto header = looking.receive_header();
    BOOST_REQUIRE(header);
    BOOST_TEST(header->status == 200u);
  }
  watching.pop_back();
  const auto until = std::chrono::steady_clock::now() + 10s;
  bool taken = false;
  while (!taken && std::chrono::steady_clock::now() < until) {
    http_socket next(port());
    next.ask("/events", {}, with_key);
    const auto header = next.receive_header();
    taken = header && header->status == 200u;
  }
  BOOST_TEST(taken);
}

BOOST_AUTO_TEST_CASE(
  a_browser_shows_the_cluster_a_loss_and_its_recovery_and_finds_the_server_again) {
  const auto script = std::string(TROUPE_SOURCE_DIR) + "/tests/integration/page_in_browser.py";
  auto child = test::process::run(
    {"/bin/sh", "-c", "exec python3 \"$0\" \"$1\"", script, troupe_program().string()}, {}, true);
  child.finish_input();
  std::string words;
  for (const auto& line : child.hear_all(540s))
    words += line + "\n";
  if (words.find("DID NOT RUN") != std::string::npos)
    BOOST_TEST_MESSAGE(words);
  else
    BOOST_TEST(words.find("all well") != std::string::npos, words);
}
