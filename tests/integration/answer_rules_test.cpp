// What a request may ask beyond text, through the whole program: biases, the most probable tokens,
// answers that follow a JSON schema, and that none of it changes when a node is lost.

#include "tests/support/cluster.hpp"
#include "tests/support/served_answers.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <csignal>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

const char* const weather = R"({"type": "object", "properties": {
  "place": {"type": "string", "maxLength": 12}, "days": {"type": "integer"},
  "units": {"enum": ["C", "F", null]}, "spots": {"type": "array", "maxItems": 3, "items":
    {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"],
     "additionalProperties": false}}},
  "required": ["place", "units"], "additionalProperties": false})";

cluster_shape demo(std::size_t pipeline, std::size_t tensor) {
  cluster_shape shape;
  shape.model = "demo";
  shape.pipeline = pipeline;
  shape.tensor = tensor;
  return shape;
}

std::string line(const std::string& more) {
  std::string schema = weather;
  std::erase(schema, '\n');
  return R"({"prompt": "In the beginning", "max_tokens": 400, "temperature": 1.3, "schema": )"
         + schema + more + "}";
}

std::vector<std::string> schema_lines() {
  std::vector<std::string> made;
  for (int seed = 0; seed < 6; ++seed)
    made.push_back(line(", \"seed\": " + std::to_string(seed)));
  return made;
}

void check_same(const std::vector<served_answer>& found, const std::vector<served_answer>& other) {
  BOOST_REQUIRE(found.size() == other.size());
  for (std::size_t at = 0; at < found.size(); ++at) {
    BOOST_TEST(found[at].tokens == other[at].tokens, boost::test_tools::per_element());
    BOOST_TEST(found[at].text == other[at].text);
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(answers_by_a_schema_parse_and_are_the_same_on_any_stages) {
  const auto alone = served(cluster{demo(1, 1)}, schema_lines());
  for (const auto& one : alone) {
    BOOST_TEST(one.finish == "stop", one.text);
    BOOST_TEST(is_weather(one.text), one.text);
  }
  check_same(served(cluster{demo(3, 1)}, schema_lines()), alone);
  for (const auto& one : served(cluster{demo(2, 2)}, schema_lines()))
    BOOST_TEST(is_weather(one.text), one.text);
}

BOOST_AUTO_TEST_CASE(the_most_probable_tokens_hold_the_chosen_one_and_its_probability) {
  const std::vector<std::string> lines = {
    R"({"prompt": "In the beginning", "max_tokens": 8, "top_logprobs": 5})",
    R"({"prompt": "In the beginning", "max_tokens": 8})"};
  const auto one = served(cluster{demo(1, 1)}, lines), four = served(cluster{demo(2, 2)}, lines);
  BOOST_REQUIRE(one[0].top.size() == 8u);
  for (std::size_t at = 0; at < 8; ++at) {
    const auto& place = one[0].top[at];
    BOOST_REQUIRE(place.size() == 5u);
    BOOST_TEST(place[0].token == one[0].tokens[at]); // greedy
    BOOST_TEST(place[0].logprob == one[0].logprobs[at]);
    for (std::size_t rank = 1; rank < place.size(); ++rank)
      BOOST_TEST(place[rank].logprob <= place[rank - 1].logprob);
    for (std::size_t rank = 0; rank < place.size(); ++rank)
      BOOST_TEST(std::abs(place[rank].logprob - four[0].top[at][rank].logprob) < 1e-4);
  }
  BOOST_TEST(one[1].top.empty());
  BOOST_TEST(one[1].tokens == one[0].tokens, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_bias_bans_and_favours_tokens) {
  const cluster two{demo(2, 1)};
  const auto plain = served(two, {R"({"prompt": "In the beginning", "max_tokens": 6})"});
  const auto first = std::to_string(plain[0].tokens[0]);
  const auto biased = served(
    two,
    {R"({"prompt": "In the beginning", "max_tokens": 6, "logit_bias": {")" + first + R"(": -100}})",
     R"({"prompt": "In the beginning", "max_tokens": 6, "logit_bias": {"77": 100}})"});
  for (const auto token : biased[0].tokens)
    BOOST_TEST(token != plain[0].tokens[0]);
  for (const auto token : biased[1].tokens)
    BOOST_TEST(token == 77u);
  const auto words = two.run({"generate",
                              "FILE",
                              "-q",
                              "--prompt",
                              "In the beginning",
                              "--max-tokens",
                              "6",
                              "--logit-bias",
                              first + "=-100"});
  BOOST_TEST(words.all() == biased[0].text);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_is_refused_by_name) {
  const cluster one{demo(1, 1)};
  const auto check = [&](const std::string& more, const std::string& words) {
    const auto ran = one.try_generate({R"({"prompt": "In", "max_tokens": 3, )" + more + "}"});
    BOOST_TEST(ran.code != 0, more);
    BOOST_TEST(ran.mentions(words), ran.all());
  };
  check(R"("top_logprobs": 21)", "top_logprobs is 21, but must be 0 ... 20");
  check(R"("logit_bias": {"5": 101})", "logit_bias of token 5 is 101, but must be -100 ... 100");
  check(R"("logit_bias": {"999999": 1})", "the model's vocabulary has 0 ... 2047");
  check(R"("logit_bias": {"x": 1})", "an object of token ids and numbers");
  check(R"("schema": {"type": "string", "pattern": "a"})", "the keyword \"pattern\" is not");
  check(R"("schema": {"type": "string"}, "ignore_end": true)", "ignore_end does not go with it");
  const auto ran = one.run({"generate", "FILE", "--prompt", "x", "--logit-bias", "5:1"});
  BOOST_TEST(ran.code == 2);
  BOOST_TEST(ran.mentions("ID=BIAS would work"), ran.all());
}

BOOST_AUTO_TEST_CASE(a_schema_file_shapes_what_is_printed) {
  const cluster two{demo(2, 1)};
  const auto file = two.folder() / "schema.json";
  std::ofstream(file) << weather;
  const auto ran = two.run({"generate",
                            "FILE",
                            "-q",
                            "--prompt",
                            "In the beginning",
                            "--max-tokens",
                            "400",
                            "--schema",
                            file.string()});
  BOOST_TEST(ran.code == 0, ran.all());
  BOOST_TEST(is_weather(ran.lines.front()), ran.all());
}

BOOST_AUTO_TEST_CASE(E01_answers_by_a_schema_go_on_with_the_same_tokens_after_a_node_was_lost) {
  const cluster three{demo(3, 1)};
  std::vector<std::string> lines;
  for (int seed = 0; seed < 3; ++seed)
    lines.push_back(
      R"({"prompt": "In the beginning", "max_tokens": 1500, "temperature": 1.2, "schema":)"
      R"({"type": "string", "minLength": 2500, "maxLength": 4096}, "seed": )"
      + std::to_string(seed) + "}");
  const auto expected = served(three, lines);
  auto head = three.start({"node", "FILE", "--name", "n0"});
  auto middle = three.start({"node", "FILE", "--name", "n1"});
  auto tail = three.start({"node", "FILE", "--name", "n2"});
  const auto becomes = [&](const std::string& words) {
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         std::chrono::steady_clock::now() < until;
         std::this_thread::sleep_for(50ms))
      if (three.run({"status", "FILE", "--json"}, 5).mentions(words))
        return true;
    return false;
  };
  BOOST_REQUIRE(becomes("\"phase\":\"serving\""));
  outcome ran;
  std::thread client{[&] { ran = three.try_generate(lines, {}, 120); }};
  for (auto* lost : {&tail, &middle}) { // the one that chooses tokens first
    BOOST_TEST(becomes("\"running\":3"));
    std::this_thread::sleep_for(300ms);
    lost->signal(SIGKILL);
    lost->wait(5s);
    *lost = three.start({"node", "FILE", "--name", lost == &tail ? "n2" : "n1"});
    BOOST_TEST(becomes("\"phase\":\"serving\""));
  }
  client.join();
  BOOST_TEST(ran.code == 0, ran.all());
  check_same(read_served(ran.lines), expected);
}
