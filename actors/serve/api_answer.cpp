#include "actors/serve/api_answer.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

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

double told_logprob(float logprob) {
  return std::isfinite(logprob) ? std::max<double>(logprob, least_logprob) : least_logprob;
}

ordered_json chat_token(const likely_token& one) {
  auto bytes = ordered_json::array();
  for (const auto byte : one.bytes)
    bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", token_text(one.bytes)},
          {"logprob", told_logprob(one.logprob)},
          {"bytes", std::move(bytes)}};
}

ordered_json chat_logprobs(std::span<const token_likelihood> likely) {
  auto content = ordered_json::array();
  for (const auto& one : likely) {
    auto told = chat_token(one.chosen);
    auto& top = told["top_logprobs"] = ordered_json::array();
    for (const auto& other : one.top)
      top.push_back(chat_token(other));
    content.push_back(std::move(told));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

ordered_json text_logprobs(std::span<const token_likelihood> likely, bool with_top) {
  auto tokens = ordered_json::array();
  auto logprobs = ordered_json::array();
  auto top = ordered_json::array();
  auto offsets = ordered_json::array();
  for (const auto& one : likely) {
    tokens.push_back(token_text(one.chosen.bytes));
    logprobs.push_back(told_logprob(one.chosen.logprob));
    offsets.push_back(one.offset);
    auto others = ordered_json::object();
    for (const auto& other : one.top)
      others.emplace(token_text(other.bytes), told_logprob(other.logprob));
    top.push_back(std::move(others));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", with_top ? std::move(top) : ordered_json()},
          {"text_offset", std::move(offsets)}};
}

// Null where nobody asked.
ordered_json logprobs_of(const answer_names& names, std::span<const token_likelihood> likely) {
  if (!names.with_logprobs)
    return nullptr;
  return names.chat ? chat_logprobs(likely) : text_logprobs(likely, names.top_logprobs > 0);
}

ordered_json
chunk_choice(std::size_t index, ordered_json delta, ordered_json logprobs, ordered_json finish) {
  return {{"index", index},
          {"delta", std::move(delta)},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish)}};
}

ordered_json text_choice(std::size_t index,
                         const std::string& text,
                         ordered_json logprobs,
                         ordered_json finish) {
  return {{"index", index},
          {"text", text},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", std::move(finish)}};
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
         {"logprobs", logprobs_of(names, one.likely)},
         {"finish_reason", one.finish}});
    else
      list.push_back(text_choice(i, one.text, logprobs_of(names, one.likely), one.finish));
  }
  made["usage"] = usage_of(usage);
  return write(made);
}

std::string role_chunk(const answer_names& names, std::size_t choice) {
  return chunk(names,
               chunk_choice(choice, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
}

std::string text_chunk(const answer_names& names,
                       std::size_t choice,
                       const std::string& text,
                       std::span<const token_likelihood> likely) {
  auto logprobs = logprobs_of(names, likely);
  return chunk(names,
               names.chat ? chunk_choice(choice, {{"content", text}}, std::move(logprobs), nullptr)
                          : text_choice(choice, text, std::move(logprobs), nullptr));
}

std::string finish_chunk(const answer_names& names, std::size_t choice, const std::string& finish) {
  return chunk(names,
               names.chat ? chunk_choice(choice, ordered_json::object(), nullptr, finish)
                          : text_choice(choice, "", nullptr, finish));
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
