#include "actors/serve/api_answer.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::serve {

namespace {

using nlohmann::ordered_json;

std::string write(const ordered_json& what) {
  return what.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json usage_of(const token_usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

ordered_json begin(const answer_names& names, bool chunk) {
  const char* kind = !names.chat ? "text_completion"
                     : chunk     ? "chat.completion.chunk"
                                 : "chat.completion";
  return {{"id", names.id}, {"object", kind}, {"created", names.created}, {"model", names.model}};
}

// A chunk with one choice in it.
std::string chunk(const answer_names& names, ordered_json choice) {
  auto made = begin(names, true);
  made["choices"] = ordered_json::array({std::move(choice)});
  if (names.with_usage)
    made["usage"] = nullptr;
  return write(made);
}

ordered_json chunk_choice(std::size_t index, ordered_json delta, ordered_json finish) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", nullptr},
          {"finish_reason", std::move(finish)}};
}

ordered_json text_choice(std::size_t index, const std::string& text, ordered_json finish) {
  return {
    {"index", index}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", std::move(finish)}};
}

ordered_json describe(const model_facts& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "troupe"},
          {"max_model_len", model.context}};
}

} // namespace

std::string completion_json(const answer_names& names,
                            std::span<const choice_text> choices,
                            const token_usage& usage) {
  auto made = begin(names, false);
  auto& list = made["choices"] = ordered_json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto& one = choices[i];
    if (names.chat)
      list.push_back(
        {{"index", i},
         {"message", {{"role", "assistant"}, {"content", one.text}, {"refusal", nullptr}}},
         {"logprobs", nullptr},
         {"finish_reason", one.finish}});
    else
      list.push_back(text_choice(i, one.text, one.finish));
  }
  made["usage"] = usage_of(usage);
  return write(made);
}

std::string role_chunk(const answer_names& names, std::size_t choice) {
  return chunk(names, chunk_choice(choice, {{"role", "assistant"}, {"content", ""}}, nullptr));
}

std::string text_chunk(const answer_names& names, std::size_t choice, const std::string& text) {
  return chunk(names,
               names.chat ? chunk_choice(choice, {{"content", text}}, nullptr)
                          : text_choice(choice, text, nullptr));
}

std::string finish_chunk(const answer_names& names, std::size_t choice, const std::string& finish) {
  return chunk(names,
               names.chat ? chunk_choice(choice, ordered_json::object(), finish)
                          : text_choice(choice, "", finish));
}

std::string usage_chunk(const answer_names& names, const token_usage& usage) {
  auto made = begin(names, true);
  made["choices"] = ordered_json::array();
  made["usage"] = usage_of(usage);
  return write(made);
}

std::string model_list_json(const model_facts& model) {
  auto made = ordered_json::object();
  made["object"] = "list";
  made["data"] = ordered_json::array({describe(model)});
  return write(made);
}

std::string model_json(const model_facts& model) {
  return write(describe(model));
}

std::string tokens_json(std::span<const token_id> tokens,
                        std::span<const std::string> pieces,
                        std::uint64_t context) {
  ordered_json made{{"count", tokens.size()},
                    {"max_model_len", context},
                    {"tokens", std::vector<token_id>(tokens.begin(), tokens.end())}};
  if (!pieces.empty())
    made["token_strs"] = std::vector<std::string>(pieces.begin(), pieces.end());
  return write(made);
}

std::string health_json(const health_facts& facts) {
  auto made = ordered_json::object();
  made["status"] = facts.good ? "ok" : "not ready";
  if (!facts.reason.empty())
    made["reason"] = facts.reason;
  if (facts.since_ms)
    made["since_ms"] = *facts.since_ms;
  return write(made);
}

std::string prompt_json(const std::string& text) {
  auto made = ordered_json::object();
  made["prompt"] = text;
  return write(made);
}

} // namespace troupe::actors::serve
