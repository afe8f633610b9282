#include "actors/cli/generate_lines.hpp"
#include "actors/cli/command.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace troupe;
using namespace troupe::cli;
using actors::text_answer;
using actors::text_request;

namespace {

text_request defaults() {
  text_request made;
  made.max_tokens = 128;
  made.sampling.temperature = 0.5f;
  made.stop = {"\n"};
  return made;
}

std::string refusal(const std::string& line) {
  const auto read = read_prompt_lines(line, "file", defaults());
  BOOST_REQUIRE(!read);
  BOOST_TEST(to_string(read.error().code) == to_string(errc::invalid_argument));
  BOOST_TEST(read.error().what.starts_with("file:1: "), read.error().what);
  return read.error().what;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_line_is_a_prompt) {
  const auto read = read_prompt_lines("one\r\n\n  \n two \nthree", "file", defaults());
  BOOST_REQUIRE(read);
  BOOST_REQUIRE(read->size() == 3u);
  BOOST_TEST((*read)[0].prompt == "one");
  BOOST_TEST((*read)[1].prompt == " two ");
  BOOST_TEST((*read)[2].prompt == "three");
  BOOST_TEST((*read)[2].max_tokens == 128u);
}

BOOST_AUTO_TEST_CASE(an_object_overrides_what_it_names) {
  const auto read = read_prompt_lines(
    R"({"prompt":"p","max_tokens":7,"temperature":1,"top_k":3,"top_p":0.5,"min_p":0.1,)"
    R"("repetition_penalty":1.5,"frequency_penalty":-1,"presence_penalty":2,)"
    R"("seed":18446744073709551615,"stop":["a","b"],"ignore_end":true})"
    "\n"
    R"({"tokens":[1,2,4294967295],"stop":"x"})",
    "file",
    defaults());
  BOOST_REQUIRE(read);
  const auto& first = read->front();
  BOOST_TEST(first.max_tokens == 7u);
  BOOST_TEST(first.sampling.temperature == 1.0f);
  BOOST_TEST(first.sampling.top_k == 3u);
  BOOST_TEST(first.sampling.top_p == 0.5f);
  BOOST_TEST(first.sampling.min_p == 0.1f);
  BOOST_TEST(first.sampling.repetition_penalty == 1.5f);
  BOOST_TEST(first.sampling.frequency_penalty == -1.0f);
  BOOST_TEST(first.sampling.presence_penalty == 2.0f);
  BOOST_TEST(first.sampling.seed == std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(first.stop == (std::vector<std::string>{"a", "b"}));
  BOOST_TEST(first.ignore_end);
  const auto& second = read->back();
  BOOST_TEST(second.tokens == (std::vector<token_id>{1, 2, 4294967295u}));
  BOOST_TEST(second.stop == std::vector<std::string>{"x"});
  BOOST_TEST(second.sampling.temperature == 0.5f);
}

BOOST_AUTO_TEST_CASE(mistakes_are_named_with_their_line_and_key) {
  BOOST_TEST(holds(refusal(R"({"prompt":"p","max_token":7})"), "unknown key max_token; known are"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","max_tokens":-1})"), "key max_tokens: -1 found"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","max_tokens":4294967296})"), "0 ... 4294967295"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","max_tokens":1.5})"), "1.5 found"));
  BOOST_TEST(holds(refusal(R"({"prompt":1})"), "a text would work"));
  BOOST_TEST(holds(refusal(R"({"tokens":[1,"x"]})"), "a list, each element a whole number"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","ignore_end":1})"), "true or false"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","top_p":"x"})"), "a number"));
  BOOST_TEST(holds(refusal(R"({"max_tokens":7})"), "needs a prompt"));
  BOOST_TEST(holds(refusal(R"({"prompt":)"), "parse error"));
  BOOST_TEST(holds(refusal("{\"prompt\":\"\xff\"}"), "file:1"));
}

BOOST_AUTO_TEST_CASE(no_prompt_at_all_is_an_error) {
  BOOST_TEST(!read_prompt_lines("\n\n", "file", defaults()));
  BOOST_TEST(!read_prompt_lines("", "file", defaults()));
}

BOOST_AUTO_TEST_CASE(D09_an_answer_is_valid_json_whatever_its_bytes) {
  text_answer answer;
  answer.text = "a\xff\"\n";
  answer.tokens = {1};
  answer.logprobs = {-0.1f};
  answer.digests = {0x0123456789abcdefu};
  answer.finish = "error";
  answer.code = errc::compute_error;
  answer.what = "bad \xfe byte";
  text_request request = defaults();
  request.prompt = "p";
  request.with_digests = true;
  const auto line = answer_json(3, request, answer);
  BOOST_TEST(!holds(line, "\n"));
  BOOST_TEST(holds(line, R"("index":3)"));
  BOOST_TEST(holds(line, "\"text\":\"a\xef\xbf\xbd\\\"\\n\""));
  BOOST_TEST(holds(line, R"("digests":["0123456789abcdef"])"));
  BOOST_TEST(holds(line, R"("error_code":"compute_error")"));
}

BOOST_AUTO_TEST_CASE(biases_probabilities_and_schemas_are_read_and_told) {
  const auto read =
    read_prompt_lines(R"({"prompt": "p", "logit_bias": {"15": -100, "3": 2.5}, "top_logprobs": 2,)"
                      R"( "schema": {"z": 1, "a": 2}})",
                      "file",
                      defaults());
  BOOST_REQUIRE(read);
  const auto& request = read->front();
  BOOST_REQUIRE(request.bias.size() == 2u);
  BOOST_TEST(request.bias[0].token == 15u);
  BOOST_TEST(request.bias[0].bias == -100.0f);
  BOOST_TEST(request.top_logprobs == 2u);
  BOOST_TEST(request.schema == R"({"z":1,"a":2})"); // the order is that of the answer's keys
  BOOST_TEST(holds(refusal(R"({"prompt":"p","logit_bias":{"-1":1}})"), "an object of token ids"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","logit_bias":{"1":"x"}})"), "an object of token ids"));
  BOOST_TEST(holds(refusal(R"({"prompt":"p","schema":"x"})"), "a JSON schema"));
  text_answer answer;
  answer.tokens = {7};
  answer.top = {{{7, -0.5f}, {9, -2.0f}}};
  const auto line = answer_json(0, request, answer);
  BOOST_TEST(
    holds(line, R"("top_logprobs":[[{"token":7,"logprob":-0.5},{"token":9,"logprob":-2.0}]])"));
}

BOOST_AUTO_TEST_CASE(bytes_read_well) {
  BOOST_TEST(bytes_text(0) == "0 B");
  BOOST_TEST(bytes_text(999) == "999 B");
  BOOST_TEST(bytes_text(1000) == "1.00 kB");
  BOOST_TEST(bytes_text(12'345'678) == "12.3 MB");
  BOOST_TEST(bytes_text(999'999) == "1.00 MB");
  BOOST_TEST(bytes_text(2'200'000'000) == "2.20 GB");
  BOOST_TEST(counted(1, "rank") == "1 rank");
  BOOST_TEST(counted(0, "rank") == "0 ranks");
}
