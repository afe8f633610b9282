// The HTTP API as clients see it: shapes, parameters, streams, errors. Raw sockets; then the
// official client and curl where they are installed.

#include "tests/paths.hpp"
#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

const std::vector<std::string> serve_it{"--set", "serve.enabled=true", "--set", "serve.port=0"};

/// The demo on two stages, serving for all cases.
struct shared_demo {
  shared_demo() : demo(shape()), serving(demo, serve_it) {}

  static cluster_shape shape() {
    cluster_shape made;
    made.model = "demo";
    made.pipeline = 2;
    return made;
  }

  cluster demo;
  serving_cluster serving;
};

const shared_demo& shared() {
  static const shared_demo one;
  return one;
}

std::uint16_t port() {
  return shared().serving.http_port();
}

json parse(const std::string& text) {
  const auto found = json::parse(text, nullptr, false);
  BOOST_REQUIRE_MESSAGE(!found.is_discarded(), "no JSON: " << text);
  return found;
}

/// What `troupe generate` says to the same request.
std::string reference(const json& request) {
  return shared().demo.generate({request.dump()}).front().text;
}

json post(std::string_view path, const json& body, unsigned status = 200) {
  const auto found = ask_http(port(), path, body.dump());
  BOOST_TEST(found.status == status, found.body);
  return parse(found.body);
}

/// A strict reader of a stream: role first (chat), deltas, one finish reason, usage if asked, DONE.
struct read_stream {
  std::string text;
  std::string finish;
  json usage;
  std::size_t pieces = 0;
};

read_stream read_completion_stream(const json& body, std::size_t choices = 1) {
  http_socket connection(port());
  connection.ask("/v1/completions", body.dump());
  const auto header = connection.receive_header();
  BOOST_REQUIRE(header);
  BOOST_TEST(header->status == 200u);
  BOOST_TEST(header->headers.at("content-type").starts_with("text/event-stream"));
  const auto events = connection.all_events();
  BOOST_REQUIRE(!events.empty());
  BOOST_TEST(events.back() == "[DONE]");
  read_stream found;
  std::set<std::string> ids;
  std::size_t finished = 0;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const auto chunk = parse(events[i]);
    ids.insert(chunk.at("id").get<std::string>());
    BOOST_TEST(chunk.at("object") == "text_completion");
    if (chunk.at("choices").empty()) {
      found.usage = chunk.at("usage");
      BOOST_TEST(i + 2 == events.size(), "usage is the last chunk");
      continue;
    }
    const auto& choice = chunk["choices"].at(0);
    BOOST_REQUIRE(choice.contains("finish_reason"));
    if (!choice["finish_reason"].is_null()) {
      found.finish = choice["finish_reason"].get<std::string>();
      ++finished;
    }
    if (choice.at("index") == 0) {
      found.text += choice.at("text").get<std::string>();
      ++found.pieces;
    }
  }
  BOOST_TEST(finished == choices);
  BOOST_TEST(ids.size() == 1u);
  return found;
}

void require_program(const std::string& found, bool& runs, const std::string& name) {
  runs = found.find("DID-NOT-FIND") == std::string::npos;
  if (!runs)
    BOOST_TEST_MESSAGE("DID NOT RUN: " << name << " is not here");
}

std::string run_shell(const std::string& script) {
  auto child = test::process::run({"/bin/sh", "-c", script}, {}, true);
  child.finish_input();
  std::string text;
  for (const auto& line : child.hear_all(60s))
    text += line + "\n";
  return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_is_the_text_that_generate_gives) {
  const json request{{"prompt", "And it came to pass"}, {"max_tokens", 12}};
  const auto expected = reference(request);
  const auto whole = post("/v1/completions", request);
  BOOST_TEST(whole.at("choices").at(0).at("text") == expected);
  BOOST_TEST(whole["choices"][0].at("finish_reason") == "length");
  BOOST_TEST(whole.at("usage").at("completion_tokens") == 12);
  BOOST_TEST(whole["usage"].at("total_tokens")
             == 12 + whole["usage"].at("prompt_tokens").get<int>());
  BOOST_TEST(whole.at("model") == "demo");
  auto streamed = request;
  streamed["stream"] = true;
  BOOST_TEST(read_completion_stream(streamed).text == expected);
}

BOOST_AUTO_TEST_CASE(D19_a_stream_is_what_a_strict_client_expects) {
  json request{{"prompt", "In the"},
               {"max_tokens", 5},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  const auto found = read_completion_stream(request);
  BOOST_TEST(found.finish == "length");
  BOOST_TEST(found.usage.at("completion_tokens") == 5);
  request.erase("stream_options");
  BOOST_TEST(read_completion_stream(request).usage.is_null());
  request["max_tokens"] = 0;
  const auto nothing = read_completion_stream(request);
  BOOST_TEST(nothing.text.empty());
  BOOST_TEST(nothing.finish == "length");
}

BOOST_AUTO_TEST_CASE(D19_several_answers_differ_and_can_be_repeated) {
  json request{{"prompt", "And the LORD said"},
               {"max_tokens", 16},
               {"temperature", 1.0},
               {"seed", 5},
               {"n", 3}};
  const auto first = post("/v1/completions", request);
  BOOST_REQUIRE(first.at("choices").size() == 3u);
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(first["choices"][i].at("index") == i);
    texts.insert(first["choices"][i].at("text").get<std::string>());
  }
  BOOST_TEST(texts.size() == 3u);
  BOOST_TEST(post("/v1/completions", request).at("choices") == first["choices"]);
  request["stream"] = true;
  BOOST_TEST(read_completion_stream(request, 3).text == first["choices"][0].at("text"));
  // Without a seed, the same question gets another answer.
  request.erase("seed");
  request["stream"] = false;
  BOOST_TEST(post("/v1/completions", request).at("choices")
             != post("/v1/completions", request).at("choices"));
}

BOOST_AUTO_TEST_CASE(prompts_come_as_text_as_ids_and_in_lists) {
  const auto tokens = post("/tokenize", {{"prompt", "In the beginning"}}).at("tokens");
  const auto text = post("/v1/completions", {{"prompt", "In the beginning"}, {"max_tokens", 6}})
                      .at("choices")
                      .at(0)
                      .at("text");
  for (const auto& prompt : {json(tokens), json{tokens}, json{"In the beginning"}})
    BOOST_TEST(post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 6}})
                 .at("choices")
                 .at(0)
                 .at("text")
               == text);
  const auto two =
    post("/v1/completions", {{"prompt", {"In the", "And God"}}, {"max_tokens", 4}, {"n", 2}});
  BOOST_TEST(two.at("choices").size() == 4u);
  BOOST_TEST(two["choices"][0].at("text") == two["choices"][1].at("text"));
}

BOOST_AUTO_TEST_CASE(D06_a_stop_string_over_several_tokens_is_never_sent) {
  const json request{{"prompt", "And it came to pass"}, {"max_tokens", 24}};
  const auto whole = reference(request);
  for (const std::size_t length : {3u, 7u, 13u, 20u}) {
    const auto begin = whole.size() / 4;
    const auto stop = whole.substr(begin, length);
    const auto expected = whole.substr(0, whole.find(stop));
    auto asked = request;
    asked["stop"] = json::array({stop, "qqqq"});
    const auto answer = post("/v1/completions", asked).at("choices").at(0);
    BOOST_TEST(answer.at("text") == expected);
    BOOST_TEST(answer.at("finish_reason") == "stop");
    asked["stop"] = stop;
    asked["stream"] = true;
    const auto streamed = read_completion_stream(asked);
    BOOST_TEST(streamed.text == expected);
    BOOST_TEST(streamed.finish == "stop");
  }
}

BOOST_AUTO_TEST_CASE(D07_a_stop_string_that_never_comes_holds_nothing_back) {
  const json request{{"prompt", "And it came to pass"}, {"max_tokens", 24}};
  auto asked = request;
  asked["stop"] = std::string(40, 'x');
  asked["stream"] = true;
  const auto found = read_completion_stream(asked);
  BOOST_TEST(found.text == reference(request));
  BOOST_TEST(found.pieces > 12u); // as it is made, not at the end
}

BOOST_AUTO_TEST_CASE(bad_parameters_are_named_with_what_is_allowed) {
  struct mistake {
    json field;
    std::string allowed;
  };

  const std::map<std::string, mistake> wrong{
    {"max_tokens", {-1, "a whole number from 0"}},
    {"temperature", {"hot", "a number from 0 to 100"}},
    {"top_p", {0, "a number above 0 to 1"}},
    {"top_k", {-2, "-1 for all"}},
    {"min_p", {1.5, "a number from 0 to 1"}},
    {"frequency_penalty", {3, "a number from -2 to 2"}},
    {"presence_penalty", {json::array(), "a number from -2 to 2"}},
    {"repetition_penalty", {0, "a number above 0"}},
    {"seed", {1.5, "a whole number of 64 bits"}},
    {"n", {0, "a whole number from 1"}},
    {"stop", {"", "none of them empty"}},
    {"stream", {1, "true or false"}},
    {"stream_options", {{{"include_usage", 3}}, "true or false"}},
    {"suffix", {"end", "is not implemented"}},
    {"logit_bias", {{{"5", 101}}, "a number from -100 to 100"}},
    {"prompt", {{{"a", 1}}, "a text, a list of token ids"}},
    {"temprature", {1, "did you mean temperature"}},
  };
  for (const auto& [name, one] : wrong) {
    json request{{"prompt", "In"}, {"max_tokens", 2}};
    request[name] = one.field;
    const auto told = post("/v1/completions", request, 400).at("error");
    BOOST_TEST(told.at("param") == name, told.dump());
    BOOST_TEST(told.at("type") == "invalid_request_error");
    BOOST_TEST(told.at("message").get<std::string>().find(one.allowed) != std::string::npos,
               told.dump());
  }
  BOOST_TEST(post("/v1/completions", {{"max_tokens", 2}}, 400).at("error").at("param") == "prompt");
  BOOST_TEST(post("/v1/completions", {{"prompt", "In"}, {"n", 17}}, 400).at("error").at("param")
             == "n");
  BOOST_TEST(
    post("/v1/completions", {{"prompt", "In"}, {"model", "gpt"}}, 404).at("error").at("code")
    == "model_not_found");
}

BOOST_AUTO_TEST_CASE(B17_an_id_beyond_the_vocabulary_is_named) {
  const auto told =
    post("/v1/completions", {{"prompt", {5, 2051, 6}}, {"max_tokens", 2}}, 400).at("error");
  BOOST_TEST(told.at("message").get<std::string>().find("2051") != std::string::npos, told.dump());
  const auto bias = post("/v1/completions",
                         {{"prompt", "In"}, {"max_tokens", 2}, {"logit_bias", {{"2051", 1}}}},
                         400)
                      .at("error");
  BOOST_TEST(bias.at("message").get<std::string>().find("2051") != std::string::npos, bias.dump());
}

BOOST_AUTO_TEST_CASE(parameters_without_effect_and_null_are_fine) {
  const json request{{"prompt", "In the"}, {"max_tokens", 4}};
  auto more = request;
  more.update({{"user", "somebody"},
               {"metadata", {{"a", "b"}}},
               {"store", true},
               {"temperature", nullptr},
               {"logit_bias", json::object()},
               {"logprobs", nullptr},
               {"echo", false},
               {"best_of", 1},
               {"model", "demo"}});
  BOOST_TEST(post("/v1/completions", more).at("choices")
             == post("/v1/completions", request).at("choices"));
}

BOOST_AUTO_TEST_CASE(a_prompt_that_is_too_long_is_told_with_both_numbers) {
  const std::vector<int> ids(3000, 5);
  const auto told = post("/v1/completions", {{"prompt", ids}}, 400).at("error");
  const auto text = told.at("message").get<std::string>();
  BOOST_TEST(text.find("3000") != std::string::npos, text);
  BOOST_TEST(text.find("2048") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_model_without_a_template_takes_no_conversations) {
  const json messages{{{"role", "user"}, {"content", "Hi"}}};
  const auto told = post("/v1/chat/completions", {{"messages", messages}}, 400).at("error");
  BOOST_TEST(told.at("code") == "no_chat_template");
  BOOST_TEST(told.at("message").get<std::string>().find("/v1/completions") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(D09_bytes_that_are_no_text_are_refused_in_valid_json) {
  for (const auto& body : std::vector<std::string>{"{\"prompt\": \"\xff\"}",
                                                   "\xff\xfe",
                                                   "{\"prompt\": \"\xed\xa0\x80\"}",
                                                   "{\"\xff\": 1}",
                                                   "{\"prompt\": \"\\ud800\"}",
                                                   "{\"prompt\": \"a\", \"stop\": \"\xc0\x80\"}",
                                                   "{\"prompt\": ",
                                                   "[]",
                                                   "{\"prompt\": \"a\", \"seed\": 1e999}"}) {
    const auto found = ask_http(port(), "/v1/completions", body);
    BOOST_TEST(found.status == 400u, found.body);
    BOOST_TEST(!parse(found.body).at("error").at("message").get<std::string>().empty());
  }
}

BOOST_AUTO_TEST_CASE(tokenize_and_detokenize_are_inverse) {
  const std::string text = "In the beginning, \u00e9\u4e2d\U0001F600 said";
  const auto found = post(
    "/tokenize", {{"prompt", text}, {"add_special_tokens", false}, {"return_token_strs", true}});
  BOOST_TEST(found.at("count") == found.at("tokens").size());
  BOOST_TEST(found.at("token_strs").size() == found.at("tokens").size());
  BOOST_TEST(found.at("max_model_len") == 2048);
  BOOST_TEST(post("/detokenize", {{"tokens", found["tokens"]}}).at("prompt") == text);
  const auto with_start = post("/tokenize", {{"prompt", text}});
  BOOST_TEST(with_start.at("count") == found["count"].get<int>() + 1);
  post("/detokenize", {{"tokens", {1 << 20}}}, 400);
  post("/detokenize", {{"tokens", {"a"}}}, 400);
}

BOOST_AUTO_TEST_CASE(models_health_and_what_is_not_there) {
  const auto list = parse(ask_http(port(), "/v1/models").body);
  BOOST_TEST(list.at("data").at(0).at("id") == "demo");
  BOOST_TEST(parse(ask_http(port(), "/v1/models/demo").body).at("max_model_len") == 2048);
  BOOST_TEST(ask_http(port(), "/v1/models/other").status == 404u);
  BOOST_TEST(ask_http(port(), "/health/live").status == 200u);
  const auto ready = ask_http(port(), "/health/ready");
  BOOST_TEST(ready.status == 200u);
  BOOST_TEST(parse(ready.body).contains("since_ms"));
  BOOST_TEST(ask_http(port(), "/nothing").status == 404u);
  const auto wrong = ask_http(port(), "/v1/completions");
  BOOST_TEST(wrong.status == 405u);
  BOOST_TEST(wrong.headers.at("allow") == "POST");
  BOOST_TEST(ask_http(port(), "/v1/models", "{}").status == 405u);
}

BOOST_AUTO_TEST_CASE(request_ids_are_kept_where_they_are_harmless) {
  const auto with_id = [](const std::string& id) {
    return ask_http(port(), "/v1/models", {}, {"X-Request-Id: " + id}).headers.at("x-request-id");
  };
  BOOST_TEST(with_id("my-id.7:a_b") == "my-id.7:a_b");
  BOOST_TEST(with_id("a b").starts_with("req-"));
  BOOST_TEST(with_id(std::string(200, 'a')).starts_with("req-"));
  const auto answer = ask_http(
    port(), "/v1/completions", R"({"prompt": "In", "max_tokens": 1})", {"X-Request-Id: mine"});
  BOOST_TEST(parse(answer.body).at("id") == "cmpl-mine");
}

BOOST_AUTO_TEST_CASE(D19_the_official_client_works_unchanged) {
  const auto script = fmt::format("{}/tests/integration/openai_client.py", TROUPE_SOURCE_DIR);
  const auto found =
    run_shell(fmt::format("python3 -c 'import openai' 2>/dev/null || {{ echo "
                          "DID-NOT-FIND; exit 0; }}; python3 {} http://127.0.0.1:{}",
                          script,
                          port()));
  bool runs = false;
  require_program(found, runs, "the Python package openai");
  if (runs)
    BOOST_TEST(found.find("all well") != std::string::npos, found);
}

BOOST_AUTO_TEST_CASE(D19_curl_works_unchanged) {
  const auto found = run_shell(fmt::format(
    "command -v curl >/dev/null || {{ echo DID-NOT-FIND; exit 0; }}; curl -sS -N "
    "http://127.0.0.1:{}/v1/completions -d '{{\"prompt\": \"In\", \"max_tokens\": 3, \"stream\": "
    "true}}'",
    port()));
  bool runs = false;
  require_program(found, runs, "curl");
  if (runs)
    BOOST_TEST(found.find("data: [DONE]") != std::string::npos, found);
}
