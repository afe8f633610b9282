// Conversations over HTTP, through a model's own template.

#include "tests/support/http_socket.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::tests;
using nlohmann::json;

namespace {

const std::string chat_ml =
  "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
  "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}"
  "{% endif %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
  "{% if add_generation_prompt %}<|assistant|>{{ mood | default('') }}{% endif %}";

/// A small model with that template, serving for all cases.
struct shared_chat {
  shared_chat() : model(shape()), chat(cluster_of(model)), serving(chat, serve_it()) {}

  static compute::random_model shape() {
    compute::random_model wanted;
    wanted.layers = 2;
    return wanted;
  }

  static cluster_shape cluster_of(const served_model& model) {
    std::ofstream(model.folder() / "chat_template.jinja") << chat_ml;
    cluster_shape made;
    made.model = model.folder();
    return made;
  }

  static std::vector<std::string> serve_it() {
    return {"--set", "serve.enabled=true", "--set", "serve.port=0", "--set", "serve.model_name=m"};
  }

  served_model model;
  cluster chat;
  serving_cluster serving;
};

std::uint16_t port() {
  static const shared_chat one;
  return one.serving.http_port();
}

json parse(const std::string& text) {
  const auto found = json::parse(text, nullptr, false);
  BOOST_REQUIRE_MESSAGE(!found.is_discarded(), "no JSON: " << text);
  return found;
}

json post(std::string_view path, const json& body, unsigned status = 200) {
  const auto found = ask_http(port(), path, body.dump());
  BOOST_TEST(found.status == status, found.body);
  return parse(found.body);
}

json conversation(const json& messages) {
  return {{"messages", messages}, {"max_tokens", 6}, {"ignore_eos", true}};
}

/// What the same text gives as a plain prompt.
json plain(const std::string& prompt) {
  return post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 6}, {"ignore_eos", true}});
}

} // namespace

BOOST_AUTO_TEST_CASE(a_conversation_is_the_text_of_its_template) {
  const json messages{
    {{"role", "developer"}, {"content", "Be brief."}},
    {{"role", "user"},
     {"content", {{{"type", "text"}, {"text", "Hi"}}, {{"type", "text"}, {"text", "you"}}}}}};
  const auto found = post("/v1/chat/completions", conversation(messages));
  const auto expected = plain("<|system|>Be brief.\n<|user|>Hi\nyou\n<|assistant|>");
  const auto& choice = found.at("choices").at(0);
  BOOST_TEST(found.at("object") == "chat.completion");
  BOOST_TEST(choice.at("message").at("role") == "assistant");
  BOOST_TEST(choice["message"].at("content") == expected.at("choices").at(0).at("text"));
  BOOST_TEST(choice.at("finish_reason") == "length");
  BOOST_TEST(found.at("usage") == expected.at("usage"));
}

BOOST_AUTO_TEST_CASE(E23_three_turns_on_two_stages_are_those_of_one) {
  const served_model model{shared_chat::shape()};
  auto shape = shared_chat::cluster_of(model);
  shape.pipeline = 2;
  const cluster staged{shape};
  const serving_cluster serving{staged, shared_chat::serve_it()};
  json messages = json::array();
  for (const std::string question : {"Hi", "And then?", "Why?"}) {
    messages.push_back({{"role", "user"}, {"content", question}});
    const auto one = post("/v1/chat/completions", conversation(messages));
    const auto two =
      ask_http(serving.http_port(), "/v1/chat/completions", conversation(messages).dump());
    BOOST_REQUIRE_MESSAGE(two.status == 200, two.body);
    const auto answer = parse(two.body).at("choices").at(0).at("message");
    BOOST_TEST(answer == one.at("choices").at(0).at("message"));
    messages.push_back(answer);
  }
  BOOST_TEST(messages.size() == 6u);
}

BOOST_AUTO_TEST_CASE(C07_a_continued_chat_keeps_the_space_before_its_answer_streamed_or_not) {
  json messages = json::array();
  std::size_t with_space = 0;
  for (const std::string question : {"Who made the heaven?", "And the earth?", "When? "}) {
    messages.push_back({{"role", "user"}, {"content", question}});
    std::string prompt;
    for (const auto& one : messages)
      prompt += "<|" + one.at("role").get<std::string>() + "|>"
                + one.at("content").get<std::string>() + "\n";
    auto request = conversation(messages);
    const auto answer = post("/v1/chat/completions", request).at("choices").at(0).at("message");
    const auto text = answer.at("content").get<std::string>();
    BOOST_TEST(text == plain(prompt + "<|assistant|>").at("choices").at(0).at("text"));
    with_space += text.starts_with(' ') ? 1 : 0;
    request["stream"] = true;
    http_socket connection(port());
    connection.ask("/v1/chat/completions", request.dump());
    BOOST_REQUIRE(connection.receive_header());
    std::string streamed;
    for (const auto& event : connection.all_events())
      if (event != "[DONE]" && !parse(event).at("choices").empty())
        streamed += parse(event)["choices"][0].at("delta").value("content", "");
    BOOST_TEST(streamed == text);
    messages.push_back(answer);
  }
  BOOST_TEST_MESSAGE(with_space << " of three answers begin with a space");
}

BOOST_AUTO_TEST_CASE(D19_a_chat_begins_with_the_role_and_ends_with_one_reason) {
  auto request = conversation({{{"role", "user"}, {"content", "Hi"}}});
  const auto whole = post("/v1/chat/completions", request);
  request.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  http_socket connection(port());
  connection.ask("/v1/chat/completions", request.dump());
  BOOST_REQUIRE(connection.receive_header());
  const auto events = connection.all_events();
  BOOST_REQUIRE(events.size() >= 4u);
  const auto role = parse(events.front()).at("choices").at(0);
  BOOST_TEST(role.at("delta").at("role") == "assistant");
  BOOST_TEST(role.at("finish_reason").is_null());
  std::string text;
  std::size_t reasons = 0;
  for (std::size_t i = 1; i + 2 < events.size(); ++i) {
    const auto choice = parse(events[i]).at("choices").at(0);
    BOOST_TEST(!choice.at("delta").contains("role"));
    text += choice["delta"].value("content", "");
    reasons += choice.at("finish_reason").is_null() ? 0 : 1;
  }
  BOOST_TEST(reasons == 1u);
  BOOST_TEST(text == whole.at("choices").at(0).at("message").at("content"));
  BOOST_TEST(parse(events[events.size() - 2]).at("usage") == whole.at("usage"));
  BOOST_TEST(events.back() == "[DONE]");
}

BOOST_AUTO_TEST_CASE(tools_and_arguments_reach_the_template) {
  const json messages{{{"role", "user"}, {"content", "Hi"}}};
  const json tool{{"type", "function"}, {"function", {{"name", "look"}}}};
  auto request = conversation(messages);
  request["tools"] = json::array({tool});
  const auto with_tools = post("/v1/chat/completions", request);
  BOOST_TEST(with_tools.at("usage").at("prompt_tokens").get<int>()
             > post("/v1/chat/completions", conversation(messages))
                 .at("usage")
                 .at("prompt_tokens")
                 .get<int>());
  request["tool_choice"] = "none";
  BOOST_TEST(
    post("/v1/chat/completions", request).at("usage").at("prompt_tokens")
    == post("/v1/chat/completions", conversation(messages)).at("usage").at("prompt_tokens"));
  request["tool_choice"] = "required";
  BOOST_TEST(post("/v1/chat/completions", request, 400).at("error").at("param") == "tool_choice");
  auto gloomy = conversation(messages);
  gloomy["chat_template_kwargs"] = {{"mood", "Alas"}};
  BOOST_TEST(post("/v1/chat/completions", gloomy).at("usage")
             == plain("<|user|>Hi\n<|assistant|>Alas").at("usage"));
}

BOOST_AUTO_TEST_CASE(what_a_conversation_may_not_be_is_said) {
  const auto refuse = [](const json& messages) {
    const auto told = post("/v1/chat/completions", conversation(messages), 400).at("error");
    BOOST_TEST(told.at("param") == "messages");
    return told.at("message").get<std::string>();
  };
  BOOST_TEST(refuse(json::array()).find("not empty") != std::string::npos);
  BOOST_TEST(refuse({{{"role", "king"}, {"content", "x"}}}).find("system, developer, user")
             != std::string::npos);
  BOOST_TEST(
    refuse({{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}).find("\"type\": \"text\"")
    != std::string::npos);
  BOOST_TEST(refuse({{{"role", "tool"}, {"content", "x"}}}).find("no tools here")
             != std::string::npos);
  const auto missing = post("/v1/chat/completions", {{"max_tokens", 3}}, 400);
  BOOST_TEST(missing.at("error").at("param") == "messages");
}

BOOST_AUTO_TEST_CASE(tokens_of_a_message_are_told_with_their_bytes_and_probabilities) {
  auto request = conversation({{{"role", "user"}, {"content", "Hi"}}});
  request["top_logprobs"] = 2;
  const auto refused = post("/v1/chat/completions", request, 400).at("error");
  BOOST_TEST(refused.at("param") == "top_logprobs");
  request["logprobs"] = true;
  const auto choice = post("/v1/chat/completions", request).at("choices").at(0);
  BOOST_TEST(choice.at("logprobs").at("refusal").is_null());
  std::string bytes;
  for (const auto& token : choice["logprobs"].at("content")) {
    for (const auto& byte : token.at("bytes"))
      bytes += static_cast<char>(byte.get<int>());
    BOOST_REQUIRE(token.at("top_logprobs").size() == 2u);
    BOOST_TEST(token["top_logprobs"][0].at("logprob") >= token["top_logprobs"][1].at("logprob"));
    BOOST_TEST(token.at("logprob") == token["top_logprobs"][0].at("logprob"));
  }
  // Random weights write parts of characters, which the text shows as U+FFFD.
  const auto text = choice.at("message").at("content").get<std::string>();
  if (text.find("\xef\xbf\xbd") == std::string::npos)
    BOOST_TEST(bytes == text);
  BOOST_TEST(!bytes.empty());
  request["logprobs"] = 3;
  BOOST_TEST(post("/v1/chat/completions", request, 400).at("error").at("param") == "logprobs");
}
