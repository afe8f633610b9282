// What a request asks of its answer beyond text, over HTTP: probabilities, biases, JSON; and its id
// in the logs of every rank.

#include "tests/support/http_socket.hpp"
#include "tests/support/served_answers.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <set>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using nlohmann::json;

namespace {

/// The demo, on two stages of two ranks, each a process.
struct shared_demo {
  shared_demo() : demo(shape()), serving(demo, serve_it()) {}

  static cluster_shape shape() {
    cluster_shape made;
    made.model = "demo";
    made.pipeline = 2;
    made.tensor = 2;
    return made;
  }

  static std::vector<std::string> serve_it() {
    return {"--set", "serve.enabled=true", "--set", "serve.port=0", "--set", "cluster.log=debug"};
  }

  cluster demo;
  serving_cluster serving;
};

const shared_demo& shared() {
  static const shared_demo one;
  return one;
}

json parse(const std::string& text) {
  const auto found = json::parse(text, nullptr, false);
  BOOST_REQUIRE_MESSAGE(!found.is_discarded(), "no JSON: " << text);
  return found;
}

json post(const json& body, unsigned status = 200, const std::vector<std::string>& headers = {}) {
  const auto found =
    ask_http(shared().serving.http_port(), "/v1/completions", body.dump(), headers);
  BOOST_TEST(found.status == status, found.body);
  return parse(found.body);
}

json first_choice(const json& body) {
  return post(body).at("choices").at(0);
}

std::string joined(const json& texts) {
  std::string all;
  for (const auto& one : texts)
    all += one.get<std::string>();
  return all;
}

json request(const std::string& prompt, int tokens) {
  return {{"prompt", prompt}, {"max_tokens", tokens}};
}

} // namespace

BOOST_AUTO_TEST_CASE(probabilities_are_those_that_generate_reports) {
  auto asked = request("And it came to pass", 12);
  auto line = asked;
  line["top_logprobs"] = 3;
  const auto reference = served(shared().demo, {line.dump()}).front();
  asked["logprobs"] = 3;
  const auto choice = first_choice(asked);
  const auto& told = choice.at("logprobs");
  BOOST_TEST(joined(told.at("tokens")) == choice.at("text"));
  BOOST_REQUIRE(told.at("token_logprobs").size() == reference.logprobs.size());
  for (std::size_t i = 0; i < reference.logprobs.size(); ++i) {
    // Greedy: the chosen token is the first of the likely ones, and what generate says of both.
    BOOST_TEST(std::abs(told["token_logprobs"][i].get<double>() - reference.logprobs[i]) < 1e-6);
    const auto& top = told.at("top_logprobs").at(i);
    BOOST_TEST(top.size() == 3u);
    BOOST_TEST(top.at(told["tokens"][i].get<std::string>()) == told["token_logprobs"][i]);
    for (const auto& odds : reference.top[i]) {
      const bool there = std::any_of(top.begin(), top.end(), [&](const auto& one) {
        return std::abs(one.template get<double>() - odds.logprob) < 1e-6;
      });
      BOOST_TEST(there);
    }
  }
}

BOOST_AUTO_TEST_CASE(offsets_count_characters_of_the_text) {
  auto asked = request("In the beginning", 10);
  asked["logprobs"] = 0;
  const auto choice = first_choice(asked);
  const auto& told = choice.at("logprobs");
  BOOST_TEST(told.at("top_logprobs").is_null());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < told["tokens"].size(); ++i) {
    BOOST_TEST(told.at("text_offset").at(i) == offset);
    offset += told["tokens"][i].get<std::string>().size(); // the demo writes ASCII here
  }
}

BOOST_AUTO_TEST_CASE(a_stream_shows_the_same_probabilities_with_their_text) {
  auto asked = request("And the LORD said", 10);
  asked["logprobs"] = 2;
  const auto whole = first_choice(asked).at("logprobs");
  asked["stream"] = true;
  http_socket connection(shared().serving.http_port());
  connection.ask("/v1/completions", asked.dump());
  BOOST_REQUIRE(connection.receive_header());
  json seen{{"tokens", json::array()},
            {"token_logprobs", json::array()},
            {"top_logprobs", json::array()},
            {"text_offset", json::array()}};
  for (const auto& event : connection.all_events()) {
    if (event == "[DONE]")
      continue;
    const auto choice = parse(event).at("choices").at(0);
    if (choice.at("logprobs").is_null())
      continue;
    BOOST_TEST(joined(choice["logprobs"].at("tokens")) == choice.at("text"));
    for (auto& [name, list] : seen.items())
      for (const auto& one : choice["logprobs"].at(name))
        list.push_back(one);
  }
  BOOST_TEST(seen == whole);
}

BOOST_AUTO_TEST_CASE(D06_what_a_stop_string_cuts_off_shows_no_probabilities_either) {
  auto asked = request("And it came to pass", 24);
  asked["logprobs"] = 0;
  const auto text = first_choice(asked).at("text").get<std::string>();
  const auto stop = text.substr(text.size() / 2, 9);
  asked["stop"] = stop;
  const auto cut = first_choice(asked);
  BOOST_TEST(cut.at("finish_reason") == "stop");
  const auto shown = joined(cut.at("logprobs").at("tokens"));
  // The last token may begin in the text and end in the stop string.
  BOOST_TEST(shown.starts_with(cut.at("text").get<std::string>()));
  BOOST_TEST(cut["logprobs"]["text_offset"].back().get<std::size_t>()
             < cut["text"].get<std::string>().size());
}

BOOST_AUTO_TEST_CASE(a_bias_forces_a_token_and_forbids_one) {
  auto asked = request("In the beginning", 4);
  asked["logprobs"] = 0;
  const auto free = first_choice(asked).at("logprobs").at("tokens").at(0).get<std::string>();
  const auto ids = parse(ask_http(shared().serving.http_port(),
                                  "/tokenize",
                                  json{{"prompt", free}, {"add_special_tokens", false}}.dump())
                           .body)
                     .at("tokens");
  BOOST_REQUIRE(ids.size() == 1u);
  const auto id = std::to_string(ids.at(0).get<int>());
  asked["logit_bias"] = {{id, -100}};
  BOOST_TEST(first_choice(asked).at("logprobs").at("tokens").at(0) != free);
  asked["logit_bias"] = {{id, 100}};
  for (const auto& token : first_choice(asked).at("logprobs").at("tokens"))
    BOOST_TEST(token == free);
}

BOOST_AUTO_TEST_CASE(json_mode_and_schemas_bind_the_answer) {
  auto asked = request("The weather in Ur is", 160);
  asked["temperature"] = 1.5;
  // In an order that no sorting gives.
  const auto schema = R"({"type":"object","properties":{"zone":{"type":"integer"},)"
                      R"("dry":{"type":"boolean"},"a":{"enum":["x","y"]}},)"
                      R"("required":["zone","dry","a"]})";
  const auto prefix = asked.dump();
  for (int seed = 0; seed < 4; ++seed) {
    const auto body = prefix.substr(0, prefix.size() - 1) + R"(,"seed":)" + std::to_string(seed)
                      + R"(,"response_format":{"type":"json_schema","json_schema":{"name":"w",)"
                      + R"("strict":true,"schema":)" + schema + "}}}";
    const auto found = ask_http(shared().serving.http_port(), "/v1/completions", body);
    BOOST_REQUIRE_MESSAGE(found.status == 200u, found.body);
    const auto choice = parse(found.body).at("choices").at(0);
    BOOST_TEST(choice.at("finish_reason") == "stop");
    const auto text = choice.at("text").get<std::string>();
    const auto answer = parse(text);
    BOOST_TEST(answer.at("zone").is_number_integer());
    BOOST_TEST(answer.at("dry").is_boolean());
    BOOST_TEST((answer.at("a") == "x" || answer.at("a") == "y"));
    BOOST_TEST(answer.size() == 3u);
    BOOST_TEST(text.find("zone") < text.find("dry"));
    BOOST_TEST(text.find("dry") < text.find("\"a\""));
  }
  asked["response_format"] = {{"type", "json_object"}};
  asked["max_tokens"] = 400;
  const auto choice = first_choice(asked);
  if (choice.at("finish_reason") == "stop") // else it is the beginning of an object
    BOOST_TEST(parse(choice.at("text").get<std::string>()).is_object());
  else
    BOOST_TEST(choice.at("text").get<std::string>().find('{') <= 1u);
}

BOOST_AUTO_TEST_CASE(bad_wishes_for_an_answer_are_named_with_what_is_allowed) {
  const auto schema = [](const json& what) {
    return json{{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", what}}}};
  };

  struct mistake {
    std::string field;
    json value;
    std::string said;
  };

  const std::vector<mistake> wrong{
    {"logprobs", true, "a whole number from 0 to 20"},
    {"logprobs", 21, "a whole number from 0 to 20"},
    {"logit_bias", {{"5", 101}}, "a number from -100 to 100"},
    {"logit_bias", {{"-1", 1}}, "\"2047\""},
    {"logit_bias", {{"2048", 1}}, "\"2047\""},
    {"logit_bias", {{"5", 1}, {"05", 1}}, "each once"},
    {"logit_bias", json::array(), "an object of token ids"},
    {"response_format", "json", "json_object"},
    {"response_format", {{"type", "xml"}}, "json_object"},
    {"response_format", {{"type", "json_schema"}}, "json_schema"},
    {"response_format", schema({{"type", "object"}, {"pattern", "x"}}), "pattern"},
    {"response_format", schema(false), "the JSON schema"},
    {"top_logprobs", 2, "there is no parameter"}, // of conversations
  };
  for (const auto& one : wrong) {
    auto asked = request("In", 2);
    asked[one.field] = one.value;
    const auto told = post(asked, 400).at("error");
    BOOST_TEST(told.at("param") == one.field, told.dump());
    BOOST_TEST(told.at("message").get<std::string>().find(one.said) != std::string::npos,
               told.dump());
  }
}

BOOST_AUTO_TEST_CASE(the_id_of_a_request_is_in_the_log_of_every_rank) {
  post(request("In the", 3), 200, {"X-Request-Id: where-is-it-7"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::set<int> found;
  while (found.size() < 4 && std::chrono::steady_clock::now() < until) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(shared().demo.folder().path())) {
      if (entry.path().extension() != ".log")
        continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        if (line.find("'where-is-it-7' has slot") != std::string::npos)
          found.insert(std::stoi(line.substr(line.find("rank ") + 5)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  BOOST_TEST(found == (std::set<int>{0, 1, 2, 3}), boost::test_tools::per_element());
}
