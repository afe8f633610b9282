// What the server does not put up with, and who may ask: limits of bodies, headers, nesting,
// connections and time; keys, origins, names of hosts; TLS.

#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::string one_token = R"({"prompt": "In", "max_tokens": 1})";

const std::string demo = "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\nthreads = 1\n";

std::vector<std::string> set(std::vector<std::string> keys) {
  keys.insert(keys.end(), {"serve.enabled=true", "serve.port=0"});
  std::vector<std::string> words;
  for (auto& key : keys) {
    words.emplace_back("--set");
    words.push_back(std::move(key));
  }
  return words;
}

/// `troupe up FILE` that is expected to fail.
outcome fail_up(const cluster& which, const std::vector<std::string>& keys) {
  std::vector<std::string> words{"up", "FILE"};
  for (auto& word : set(keys))
    words.push_back(std::move(word));
  return which.run(words, 30);
}

void write_private(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  std::filesystem::permissions(
    path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

std::string message_of(const http_reply& reply) {
  const auto told = json::parse(reply.body, nullptr, false);
  BOOST_REQUIRE_MESSAGE(told.is_object(), reply.body);
  return told.at("error").at("message").get<std::string>();
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

/// A request that a browser or a proxy could send: the header lines are the test's own.
http_reply
ask_as(std::uint16_t port, const std::string& first, const std::vector<std::string>& headers) {
  http_socket connection(port);
  std::string text = first + "\r\n";
  for (const auto& one : headers)
    text += one + "\r\n";
  connection.send(text + "\r\n");
  const auto found = connection.receive();
  BOOST_REQUIRE_MESSAGE(found, "no answer to " << first);
  return *found;
}

std::string run_shell(const std::string& script) {
  auto child = test::process::run({"/bin/sh", "-c", script}, {}, true);
  child.finish_input();
  std::string text;
  for (const auto& line : child.hear_all(30s))
    text += line + "\n";
  return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(A09_bodies_headers_and_nesting_have_limits) {
  const cluster one{demo};
  const serving_cluster serving{
    one, set({"serve.body_bytes=1000", "serve.header_bytes=1000", "serve.nesting=5"})};
  const auto port = serving.http_port();
  const auto large =
    ask_http(port, "/v1/completions", json{{"prompt", std::string(2000, 'a')}}.dump());
  BOOST_TEST(large.status == 413u);
  BOOST_TEST(has(message_of(large), "1000 bytes (serve.body_bytes)"));
  const auto header = ask_http(port, "/v1/models", {}, {"X-Long: " + std::string(2000, 'a')});
  BOOST_TEST(header.status == 431u);
  BOOST_TEST(has(message_of(header), "serve.header_bytes"));
  const auto deep =
    ask_http(port, "/v1/completions", R"({"prompt": "[[[[[", "metadata": [[[[[1]]]]]})");
  BOOST_TEST(deep.status == 400u);
  BOOST_TEST(has(message_of(deep), "nests 6 levels deep; allowed are 5 (serve.nesting)"));
  BOOST_TEST(ask_http(port, "/v1/completions", one_token).status == 200u);
}

BOOST_AUTO_TEST_CASE(what_is_no_http_gets_one_answer_and_the_end) {
  const cluster one{demo};
  const serving_cluster serving{one, set({})};
  for (const auto& bytes : std::vector<std::string>{
         std::string("\x16\x03\x01\x02\x00\x01", 6),
         std::string("GET\r\n\r\n"),
         std::string("POST /tokenize HTTP/1.1\r\nContent-Length: -5\r\n\r\n"),
         std::string("GET / HTTP/1.1\r\nbad header\r\n\r\n"),
         std::string("POST / HTTP/1.1\r\nContent-Length: 3\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")}) {
    http_socket connection(serving.http_port());
    connection.send(bytes + "\r\n\r\n");
    if (const auto found = connection.receive(5s)) {
      BOOST_TEST(found->status == 400u);
      BOOST_TEST(!message_of(*found).empty());
    }
    BOOST_TEST(connection.is_closed(5s));
  }
  BOOST_TEST(ask_http(serving.http_port(), "/health/live").status == 200u);
}

BOOST_AUTO_TEST_CASE(A09_connections_and_time_have_limits) {
  const cluster one{demo};
  const serving_cluster serving{
    one, set({"serve.connections=3", "serve.read_ms=400", "serve.idle_ms=600"})};
  const auto port = serving.http_port();
  http_socket slow(port);
  slow.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Le");
  const auto late = slow.receive(3s);
  BOOST_REQUIRE(late);
  BOOST_TEST(late->status == 408u);
  BOOST_TEST(slow.is_closed(5s));
  slow.close();
  http_socket idle(port);
  BOOST_TEST(idle.is_closed(3s));
  idle.close();
  std::this_thread::sleep_for(200ms);
  std::vector<http_socket> held;
  for (int i = 0; i < 3; ++i) {
    held.emplace_back(port);
    held.back().ask("/v1/models");
    BOOST_TEST(held.back().receive()->status == 200u);
  }
  http_socket fourth(port);
  const auto full = fourth.receive(3s);
  BOOST_REQUIRE(full);
  BOOST_TEST(full->status == 503u);
  BOOST_TEST(has(message_of(*full), "3 connections are open already (serve.connections)"));
}

BOOST_AUTO_TEST_CASE(requests_follow_each_other_on_one_connection) {
  const cluster one{demo};
  const serving_cluster serving{one, set({})};
  http_socket connection(serving.http_port());
  connection.ask("/v1/completions", one_token);
  connection.ask("/v1/models");
  connection.ask("/tokenize", R"({"prompt": "In the"})");
  for (const auto* expected : {"text_completion", "\"list\"", "\"tokens\""}) {
    const auto found = connection.receive();
    BOOST_REQUIRE(found);
    BOOST_TEST(found->status == 200u);
    BOOST_TEST(has(found->body, expected), found->body);
  }
  // A body that comes in chunks and in drops, and a client that asks before it sends.
  connection.send(
    "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const auto& part :
       std::vector<std::string>{"5\r\n{\"pro\r\n", "10\r\nmpt\": \"In the\" }\r\n", "0\r\n\r\n"}) {
    std::this_thread::sleep_for(50ms);
    connection.send(part);
  }
  BOOST_TEST(connection.receive()->status == 200u);
  connection.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                  "Content-Length: 16\r\n\r\n");
  std::this_thread::sleep_for(50ms);
  connection.send(R"({"prompt": "In"})");
  BOOST_TEST(connection.receive()->status == 200u);
  http_socket old(serving.http_port());
  old.send("GET /v1/models HTTP/1.0\r\n\r\n");
  BOOST_TEST(old.receive()->headers.at("connection") == "close");
  BOOST_TEST(old.is_closed(5s));
}

BOOST_AUTO_TEST_CASE(A09_serve_names_choices_and_unknown_parameters) {
  const cluster one{demo};
  const serving_cluster serving{
    one, set({"serve.unknown_parameters=ignore", "serve.model_name=mine", "serve.max_choices=2"})};
  const auto port = serving.http_port();
  BOOST_TEST(
    ask_http(port, "/v1/completions", R"({"prompt": "In", "max_tokens": 1, "new": 1})").status
    == 200u);
  BOOST_TEST(has(ask_http(port, "/v1/models").body, "\"mine\""));
  const auto many = ask_http(port, "/v1/completions", R"({"prompt": "In", "n": 3})");
  BOOST_TEST(many.status == 400u);
  BOOST_TEST(has(message_of(many), "allowed are 2 (serve.max_choices)"));
}

BOOST_AUTO_TEST_CASE(keys_are_asked_for_where_there_are_some) {
  const temporary_folder folder;
  const std::string key = "sk-0123456789abcdef";
  write_private(folder.path() / "keys", "# a comment\n" + key + "\nanother-key-0123456789\n");
  const cluster one{demo};
  const serving_cluster serving{one, set({"serve.keys_file=" + (folder.path() / "keys").string()})};
  const auto port = serving.http_port();
  const auto with = [&](const std::string& shown) {
    return ask_http(port, "/v1/completions", one_token, {"Authorization: " + shown}).status;
  };
  const auto without = ask_http(port, "/v1/completions", one_token);
  BOOST_TEST(without.status == 401u);
  BOOST_TEST(without.headers.at("www-authenticate") == "Bearer");
  BOOST_TEST(!has(without.body, key));
  BOOST_TEST(with("Bearer " + key) == 200u);
  BOOST_TEST(with("Bearer another-key-0123456789") == 200u);
  BOOST_TEST(with("Bearer " + key + "x") == 401u);
  BOOST_TEST(with("Bearer " + key.substr(0, 10)) == 401u);
  BOOST_TEST(with("Basic " + key) == 401u);
  BOOST_TEST(ask_http(port, "/v1/models").status == 401u);
  BOOST_TEST(ask_http(port, "/health/ready").status == 200u);
}

BOOST_AUTO_TEST_CASE(bad_keys_files_and_ports_are_pointed_at) {
  const temporary_folder folder;
  write_private(folder.path() / "short", "abc\n");
  const cluster short_key{demo};
  const auto short_file = "serve.keys_file=" + (folder.path() / "short").string();
  const auto told = fail_up(short_key, {short_file});
  BOOST_TEST(told.code == 2);
  BOOST_TEST(told.mentions("the key in line 1 has 3 characters"), told.all());
  std::filesystem::permissions(folder.path() / "short", std::filesystem::perms::all);
  BOOST_TEST(fail_up(short_key, {short_file}).mentions("every user of this host can read"));
  const cluster one{demo};
  const serving_cluster serving{one, set({})};
  const cluster other{demo};
  auto on_its_port = set({});
  on_its_port.insert(on_its_port.begin(), {"up", "FILE"});
  on_its_port.back() = fmt::format("serve.port={}", serving.http_port());
  const auto taken = other.run(on_its_port, 30);
  BOOST_TEST(taken.code == 2);
  BOOST_TEST(taken.mentions("serve.port"), taken.all());
  BOOST_TEST(taken.mentions("Address already in use"), taken.all());
  const auto open = fail_up(other, {"serve.bind=0.0.0.0"});
  BOOST_TEST(open.code == 2);
  BOOST_TEST(open.mentions("set serve.keys_file"), open.all());
}

BOOST_AUTO_TEST_CASE(pages_of_others_do_not_get_in_unless_they_are_listed) {
  const cluster one{demo};
  const serving_cluster serving{one, set({"serve.origins=[\"https://chat.example\"]"})};
  const auto port = serving.http_port();
  const auto from = [&](const std::string& origin) {
    return ask_as(port, "GET /v1/models HTTP/1.1", {"Host: localhost", "Origin: " + origin});
  };
  const auto listed = from("https://chat.example");
  BOOST_TEST(listed.status == 200u);
  BOOST_TEST(listed.headers.at("access-control-allow-origin") == "https://chat.example");
  const auto foreign = from("https://evil.example");
  BOOST_TEST(foreign.status == 403u);
  BOOST_TEST(foreign.headers.count("access-control-allow-origin") == 0u);
  BOOST_TEST(from("null").status == 403u);
  BOOST_TEST(from("http://localhost").status == 200u); // its own page
  const auto before = ask_as(
    port,
    "OPTIONS /v1/chat/completions HTTP/1.1",
    {"Host: localhost", "Origin: https://chat.example", "Access-Control-Request-Method: POST"});
  BOOST_TEST(before.status == 204u);
  BOOST_TEST(has(before.headers.at("access-control-allow-methods"), "POST"));
  BOOST_TEST(has(before.headers.at("access-control-allow-headers"), "Authorization"));
  // Rebinding: a page reaches this host under a name of its own.
  for (const auto& [host, status] : std::map<std::string, unsigned>{{"evil.example", 403},
                                                                    {"evil.example:8080", 403},
                                                                    {"127.0.0.1:8080", 200},
                                                                    {"[::1]:8080", 200},
                                                                    {"chat.example", 200}})
    BOOST_TEST(ask_as(port, "GET /v1/models HTTP/1.1", {"Host: " + host}).status == status, host);
}

BOOST_AUTO_TEST_CASE(https_serves_where_there_is_a_certificate) {
  const temporary_folder folder;
  const auto made = run_shell(fmt::format(
    "command -v openssl >/dev/null && command -v curl >/dev/null || {{ echo DID-NOT-FIND; exit 0; "
    "}}; "
    "umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
    "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {0}/key.pem -out "
    "{0}/cert.pem 2>&1",
    folder.path().string()));
  if (has(made, "DID-NOT-FIND")) {
    BOOST_TEST_MESSAGE("DID NOT RUN: openssl or curl is not here");
    return;
  }
  const cluster one{demo};
  const serving_cluster serving{one,
                                set({"serve.certificate=" + (folder.path() / "cert.pem").string(),
                                     "serve.key=" + (folder.path() / "key.pem").string()})};
  BOOST_TEST(has(serving.words(), "https://"), serving.words());
  const auto found = run_shell(
    fmt::format("curl -sS -N --cacert {0}/cert.pem https://localhost:{1}/v1/completions -d "
                "'{{\"prompt\": \"In\", \"max_tokens\": 200, \"stream\": true}}'",
                folder.path().string(),
                serving.http_port()));
  BOOST_TEST(has(found, "data: [DONE]"), found);
  http_socket plain(serving.http_port());
  plain.ask("/v1/models");
  BOOST_TEST(!plain.receive(2s));
}
