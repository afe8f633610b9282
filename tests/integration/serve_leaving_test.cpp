// Clients that leave, wait, read slowly and come all at once; clusters that lose a node. What a
// client gets never depends on the others.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <random>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

using clock_type = std::chrono::steady_clock;

cluster_shape shape_with(const std::string& more, std::size_t stages = 2) {
  cluster_shape shape;
  shape.model = small_model().folder();
  shape.pipeline = stages;
  shape.more = more + "\n[serve]\nenabled = true\nport = 0\n";
  return shape;
}

json wish(const std::vector<token_id>& tokens, std::size_t new_tokens, bool stream = true) {
  return {{"prompt", tokens}, {"max_tokens", new_tokens}, {"ignore_eos", true}, {"stream", stream}};
}

std::string text_of(const std::vector<std::string>& events) {
  std::string text;
  for (const auto& event : events) {
    const auto chunk = json::parse(event, nullptr, false);
    if (chunk.is_object() && chunk.contains("choices") && !chunk["choices"].empty())
      text += chunk["choices"][0].value("text", "");
  }
  return text;
}

/// The text that each prompt gets when it is alone.
std::vector<std::string> references(const cluster& where,
                                    const std::vector<std::vector<token_id>>& prompts,
                                    std::size_t new_tokens) {
  std::vector<std::string> texts;
  for (const auto& prompt : prompts)
    texts.push_back(where.generate({token_prompt(prompt, new_tokens)}).front().text);
  return texts;
}

/// All prompts at once, again and again: how many texts are not the expected ones.
std::size_t count_wrong(const serving_cluster& serving,
                        const std::vector<std::vector<token_id>>& prompts,
                        const std::vector<std::string>& expected,
                        int rounds) {
  std::size_t wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<http_socket> clients;
    for (const auto& prompt : prompts) {
      clients.emplace_back(serving.http_port());
      clients.back().ask("/v1/completions", wish(prompt, 8).dump());
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      BOOST_REQUIRE(clients[i].receive_header());
      wrong += text_of(clients[i].all_events()) == expected[i] ? 0 : 1;
    }
  }
  return wrong;
}

json health(std::uint16_t port) {
  auto found = ask_http(port, "/health/ready");
  auto told = json::parse(found.body);
  told["code"] = found.status;
  return told;
}

bool health_becomes(std::uint16_t port,
                    unsigned status,
                    const std::string& words,
                    std::chrono::seconds patience) {
  const auto until = clock_type::now() + patience;
  json told;
  do {
    told = health(port);
    if (told["code"] == status && told.value("reason", "").find(words) != std::string::npos)
      return true;
    std::this_thread::sleep_for(20ms);
  } while (clock_type::now() < until);
  BOOST_TEST_MESSAGE("health stayed " << told.dump());
  return false;
}

/// A node that was started by itself, and the port of its HTTP server.
struct head_node {
  explicit head_node(const cluster& where)
    : child(where.start({"node", "FILE", "--name", "n0", "--set", "serve.keep_alive_ms=200"})) {
    child.finish_input();
    const auto until = clock_type::now() + 15s;
    while (port == 0 && clock_type::now() < until)
      if (const auto line = child.hear(1s); line && line->find("http serves") != std::string::npos)
        port = port_in(*line);
    BOOST_REQUIRE(port != 0);
  }

  test::process child;
  std::uint16_t port = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(D01_a_client_that_leaves_in_mid_stream_stops_every_rank) {
  const cluster two{shape_with("[state]\nmax_sequences = 2")};
  const serving_cluster serving{two};
  for (const bool reset : {false, true}) {
    http_socket client(serving.http_port());
    client.ask("/v1/completions", wish({1, 2, 3}, 2000).dump());
    BOOST_REQUIRE(client.receive_header());
    for (int i = 0; i < 3; ++i)
      BOOST_REQUIRE(client.next_event());
    client.close(reset);
    const auto left = clock_type::now();
    BOOST_TEST(serving.becomes("pages_used", 0));
    BOOST_TEST((clock_type::now() - left) < 2s);
    const auto before = serving.gauges();
    const auto after = serving.gauges();
    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      BOOST_TEST(before[rank].at("steps") == after[rank].at("steps"));
      BOOST_TEST(before[rank].at("steps") == before[0].at("steps"));
    }
  }
  BOOST_TEST(number_in(serving.status(), "cancelled") == 2u);
  BOOST_TEST(number_in(serving.status(), "answer_tokens") < 4000u);
}

BOOST_AUTO_TEST_CASE(D01_a_client_that_leaves_before_the_whole_answer_stops_it_too) {
  const cluster two{shape_with("")};
  const serving_cluster serving{two};
  http_socket client(serving.http_port());
  client.ask("/v1/completions", wish({1, 2, 3}, 2000, false).dump());
  BOOST_REQUIRE(serving.becomes("running", 1));
  client.close();
  BOOST_TEST(serving.becomes("pages_used", 0));
  BOOST_TEST(number_in(serving.status(), "cancelled") == 1u);
}

BOOST_AUTO_TEST_CASE(D03_a_queued_client_that_leaves_takes_nobody_along) {
  const cluster two{shape_with("[state]\nmax_sequences = 1")};
  const serving_cluster serving{two};
  const auto expected = references(two, {{4, 5, 6}}, 600).front();
  http_socket active(serving.http_port());
  active.ask("/v1/completions", wish({4, 5, 6}, 600).dump());
  BOOST_REQUIRE(active.receive_header());
  BOOST_REQUIRE(active.next_event());
  http_socket queued(serving.http_port());
  queued.ask("/v1/completions", wish({7, 8}, 600).dump());
  BOOST_REQUIRE(queued.receive_header());
  queued.close();
  http_socket other(serving.http_port());
  other.ask("/v1/completions", wish({7, 8}, 5).dump());
  const auto first = active.all_events();
  BOOST_TEST(first.size() > 100u);
  BOOST_TEST(expected.ends_with(text_of(first)));
  BOOST_REQUIRE(other.receive_header());
  BOOST_TEST(!other.all_events().empty());
  BOOST_TEST(number_in(serving.status(), "cancelled") == 1u);
}

BOOST_AUTO_TEST_CASE(D11_health_answers_under_64_streams_and_a_long_prompt) {
  compute::random_model heavy;
  heavy.layers = 8;
  heavy.hidden = 512;
  heavy.ffn = 1536;
  heavy.context = 4096;
  const served_model model{heavy};
  auto shape = shape_with("");
  shape.model = model.folder();
  const cluster two{shape};
  const serving_cluster serving{two};
  const auto port = serving.http_port();
  std::vector<http_socket> streams;
  for (unsigned i = 0; i < 64; ++i) {
    streams.emplace_back(port);
    streams.back().ask("/v1/completions", wish(random_tokens(16, 2048, i), 400).dump());
  }
  streams.emplace_back(port);
  streams.back().ask("/v1/completions", wish(random_tokens(3500, 2048, 99), 400).dump());
  auto slowest = 0ms;
  const auto until = clock_type::now() + 5s;
  while (clock_type::now() < until) {
    for (const auto* path : {"/health/live", "/health/ready"}) {
      const auto before = clock_type::now();
      const auto answer = ask_http(port, path);
      BOOST_TEST(answer.status == 200u, path << " answered " << answer.body);
      slowest = std::max(
        slowest, std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - before));
    }
    std::this_thread::sleep_for(100ms);
  }
  BOOST_TEST_MESSAGE("the slowest answer took " << slowest.count() << " ms");
  BOOST_TEST(slowest < 200ms);
  for (auto& stream : streams)
    stream.close();
  BOOST_TEST(serving.becomes("pages_used", 0));
}

BOOST_AUTO_TEST_CASE(D13_concurrent_streams_get_their_own_texts) {
  const cluster two{shape_with("[state]\nmax_sequences = 16")};
  const serving_cluster serving{two};
  std::vector<std::vector<token_id>> prompts;
  for (unsigned i = 0; i < 16; ++i)
    prompts.push_back(random_tokens(3 + i * 5, 2048, i));
  BOOST_TEST(count_wrong(serving, prompts, references(two, prompts, 8), 100) == 0u);
}

BOOST_AUTO_TEST_CASE(D17_prompts_that_differ_in_the_last_token_of_a_page_keep_apart) {
  const cluster two{shape_with("")};
  const serving_cluster serving{two};
  const auto twin = [](token_id last) {
    auto prompt = random_tokens(33, 2048, 77);
    prompt[31] = last;
    return prompt;
  };
  std::vector<std::vector<token_id>> prompts{twin(7)};
  auto expected = references(two, prompts, 8);
  for (token_id last = 8; expected.size() < 2; ++last) {
    BOOST_REQUIRE(last < 200);
    const auto other = references(two, {twin(last)}, 8).front();
    if (other == expected.front())
      continue; // It makes no difference to this model.
    prompts.push_back(twin(last));
    expected.push_back(other);
  }
  BOOST_TEST(count_wrong(serving, prompts, expected, 20) == 0u);
}

BOOST_AUTO_TEST_CASE(D15_a_prompt_that_was_cancelled_half_way_leaves_nothing_behind) {
  const cluster two{shape_with("[schedule]\nprefill_chunk = 16")};
  const serving_cluster serving{two};
  const auto prompt = random_tokens(1000, 2048, 3);
  const auto expected = references(two, {prompt}, 8).front();
  std::mt19937 random{15};
  for (int i = 0; i < 10; ++i) {
    http_socket client(serving.http_port());
    client.ask("/v1/completions", wish(prompt, 8).dump());
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    client.close(i % 2 == 0);
    const auto again =
      ask_http(serving.http_port(), "/v1/completions", wish(prompt, 8, false).dump());
    BOOST_TEST(json::parse(again.body).at("choices").at(0).at("text") == expected);
  }
  BOOST_TEST(serving.becomes("pages_used", 0));
}

BOOST_AUTO_TEST_CASE(D21_a_full_queue_says_so_and_loses_nobody) {
  const cluster two{shape_with("[state]\nmax_sequences = 1\n[schedule]\nqueue = 4")};
  const serving_cluster serving{two};
  std::vector<http_socket> clients;
  for (unsigned i = 0; i < 20; ++i) {
    clients.emplace_back(serving.http_port());
    clients.back().ask("/v1/completions", wish({i + 1, 5}, 300, false).dump());
  }
  std::size_t good = 0;
  std::size_t refused = 0;
  for (auto& client : clients) {
    const auto found = client.receive(30s);
    BOOST_REQUIRE(found);
    if (found->status == 200) {
      ++good;
      BOOST_TEST(json::parse(found->body).at("usage").at("completion_tokens") == 300);
      continue;
    }
    ++refused;
    BOOST_TEST(found->status == 429u, found->body);
    BOOST_TEST(std::stoul(found->headers.at("retry-after")) >= 1u);
    BOOST_TEST(json::parse(found->body).at("error").at("type") == "rate_limit_error");
  }
  BOOST_TEST(good + refused == 20u);
  BOOST_TEST(good >= 5u);
  BOOST_TEST(refused >= 10u);
}

BOOST_AUTO_TEST_CASE(D23_leaving_late_or_just_at_the_end_disturbs_nobody) {
  const cluster three{shape_with("[state]\nmax_sequences = 8", 3)};
  const serving_cluster serving{three};
  const std::vector<token_id> prompt{9, 8, 7};
  const auto expected = references(three, {prompt}, 10).front();
  std::mt19937 random{23};
  std::vector<http_socket> clients;
  for (int i = 0; i < 500; ++i) {
    clients.emplace_back(serving.http_port());
    clients.back().ask("/v1/completions", wish(prompt, 1 + random() % 10).dump());
    if (clients.size() < 8)
      continue;
    for (auto& client : clients) {
      const auto pieces = random() % 12;
      if (client.receive_header())
        for (std::size_t k = 0; k < pieces && client.next_event(2s); ++k) {
        }
      client.close(random() % 2 == 0);
    }
    clients.clear();
  }
  clients.clear();
  BOOST_TEST(serving.becomes("pages_used", 0));
  const auto after =
    ask_http(serving.http_port(), "/v1/completions", wish(prompt, 10, false).dump());
  BOOST_TEST(json::parse(after.body).at("choices").at(0).at("text") == expected);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_cut_off_and_its_work_stops) {
  const cluster two{shape_with("[state]\nmax_sequences = 16\n")};
  const serving_cluster serving{two, {"--set", "serve.stream_buffer_bytes=4096"}};
  http_socket slow(serving.http_port(), 4096);
  auto request = wish({1, 2, 3}, 1500);
  request["n"] = 16;
  slow.ask("/v1/completions", request.dump());
  BOOST_REQUIRE(slow.receive_header());
  const auto until = clock_type::now() + 30s;
  while (clock_type::now() < until && !serving.becomes("running", 0)) {
  }
  BOOST_TEST(number_in(serving.status(), "cancelled") == 16u);
  BOOST_TEST(ask_http(serving.http_port(), "/v1/completions", wish({1, 2}, 5, false).dump()).status
             == 200u);
}

BOOST_AUTO_TEST_CASE(a_cluster_that_says_that_it_serves_is_ready) {
  const cluster two{shape_with("")};
  for (int start = 0; start < 10; ++start) {
    const serving_cluster serving{two};
    const auto answer = ask_http(serving.http_port(), "/health/ready");
    BOOST_TEST(answer.status == 200u, "start " << start << ": " << answer.body);
  }
}

BOOST_AUTO_TEST_CASE(A25_not_ready_is_503_with_the_reason_until_the_last_stage_is_there) {
  const cluster two{shape_with("")};
  head_node head(two);
  BOOST_TEST(health_becomes(head.port, 503, "n1", 5s));
  BOOST_TEST(ask_http(head.port, "/health/live").status == 200u);
  const auto refused = ask_http(head.port, "/v1/completions", wish({1, 2}, 5, false).dump());
  BOOST_TEST(refused.status == 503u);
  BOOST_TEST(refused.headers.count("retry-after") == 1u);
  BOOST_TEST(refused.body.find("not ready for") != std::string::npos, refused.body);
  auto tail = two.start({"node", "FILE", "--name", "n1"});
  BOOST_TEST(health_becomes(head.port, 200, "", 20s));
}

BOOST_AUTO_TEST_CASE(A25_a_stage_that_stands_still_while_it_loads_is_waited_for_and_named) {
  const cluster two{shape_with("[deadlines]\nprogress_ms = 30000\n"
                               "[[fault]]\nwhat = \"stop\"\nwhere = \"node n1\"\n"
                               "when = \"load 50\"\n")};
  head_node head(two);
  auto tail = two.start({"node", "FILE", "--name", "n1"});
  BOOST_TEST(health_becomes(head.port, 503, "loading", 10s));
  std::this_thread::sleep_for(2s); // the fault has no clock: whoever asks waits
  BOOST_TEST(health_becomes(head.port, 503, "loading", 1s));
  BOOST_TEST(ask_http(head.port, "/v1/completions", wish({1, 2}, 5, false).dump()).status == 503u);
  tail.signal(SIGCONT);
  BOOST_TEST(health_becomes(head.port, 200, "", 20s));
  BOOST_TEST(ask_http(head.port, "/v1/completions", wish({1, 2}, 5, false).dump()).status == 200u);
}

BOOST_AUTO_TEST_CASE(A11_a_stream_pauses_while_a_node_is_replaced_and_goes_on_with_the_same_text) {
  const cluster two{shape_with("")};
  const auto expected = references(two, {{3, 2, 1}}, 800).front();
  head_node head(two);
  auto tail = two.start({"node", "FILE", "--name", "n1"});
  BOOST_REQUIRE(health_becomes(head.port, 200, "", 20s));
  http_socket client(head.port);
  client.ask("/v1/completions", wish({3, 2, 1}, 800).dump());
  BOOST_REQUIRE(client.receive_header());
  std::vector<std::string> events;
  for (int i = 0; i < 3; ++i)
    events.push_back(client.next_event().value_or(""));
  tail.signal(SIGKILL);
  tail.wait(5s);
  BOOST_TEST(health_becomes(head.port, 503, "n1", 10s));
  bool paused = false;
  while (!paused) {
    const auto event = client.next_event(15s);
    BOOST_REQUIRE(event);
    paused = event->starts_with(": paused");
    if (!event->starts_with(":"))
      events.push_back(*event);
  }
  auto again = two.start({"node", "FILE", "--name", "n1"});
  for (const auto& event : client.all_events(40s))
    events.push_back(event);
  BOOST_TEST(events.back() == "[DONE]");
  BOOST_TEST(text_of(events) == expected);
}

BOOST_AUTO_TEST_CASE(ready_turns_red_within_the_bound_and_names_a_stage_that_is_frozen) {
  const cluster two{shape_with("[deadlines]\nprogress_ms = 1000\n")};
  head_node head(two);
  auto tail = two.start({"node", "FILE", "--name", "n1"});
  BOOST_REQUIRE(health_becomes(head.port, 200, "", 20s));
  tail.signal(SIGSTOP);
  const auto frozen = clock_type::now();
  BOOST_TEST(health_becomes(head.port, 503, "n1", 5s));
  const auto took =
    std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - frozen);
  BOOST_TEST_MESSAGE("ready turned red after " << took.count() << " ms");
  BOOST_TEST(took < 2000ms);
  tail.signal(SIGCONT);
}
