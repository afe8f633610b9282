#include "actors/serve/api_request.hpp"

#include "actors/serve/answer_fields.hpp"
#include "actors/serve/json_values.hpp"
#include "config/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace troupe::actors::serve {

namespace {

using nlohmann::json;

constexpr std::size_t most_stops = 16;
constexpr std::size_t longest_stop = 1024;

// -- values of the API ----------------------------------------------------------------------------

std::string take_seed(const json& from, std::optional<std::uint64_t>& into) {
  if (from.is_number_unsigned())
    into = from.get<std::uint64_t>();
  else if (from.is_number_integer())
    into = static_cast<std::uint64_t>(from.get<std::int64_t>());
  else
    return "a whole number of 64 bits";
  return {};
}

std::string take_top_k(const json& from, std::uint32_t& into) {
  into = 0;
  if (from.is_number_integer() && !from.is_number_unsigned() && from.get<std::int64_t>() == -1)
    return {}; // What some servers call "off".
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const auto right = take_whole(from, into, 0, most);
  return right.empty() ? right : right + ", or -1 for all";
}

std::string take_stop(const json& from, std::vector<std::string>& into) {
  const auto right =
    fmt::format("a text or a list of at most {} texts, none of them empty or longer than {} bytes",
                most_stops,
                longest_stop);
  into.clear();
  if (from.is_string())
    into.push_back(from.get<std::string>());
  else if (!from.is_array() || from.size() > most_stops)
    return right;
  else
    for (const auto& one : from)
      if (!take(one, into.emplace_back()).empty())
        return right;
  for (const auto& one : into)
    if (one.empty() || one.size() > longest_stop)
      return right;
  return {};
}

std::string take_prompts(const json& from, std::vector<api_prompt>& into) {
  const std::string right = "a text, a list of token ids, or a list of either, not empty";
  into.clear();
  if (from.is_string()) {
    into.push_back({from.get<std::string>(), {}});
    return {};
  }
  if (!from.is_array() || from.empty())
    return right;
  if (from.front().is_number()) {
    into.emplace_back();
    return take_ids(from, into.back().tokens) ? std::string{} : right;
  }
  for (const auto& one : from) {
    auto& prompt = into.emplace_back();
    if (one.is_string())
      prompt.text = one.get<std::string>();
    else if (!take_ids(one, prompt.tokens))
      return right;
  }
  return {};
}

// Parts of text become one text: models of text know no parts.
bool join_parts(json& content) {
  if (content.is_string() || content.is_null())
    return true;
  if (!content.is_array())
    return false;
  std::string text;
  for (const auto& part : content) {
    if (!part.is_object() || part.value("type", json()) != "text" || !part.contains("text")
        || !part["text"].is_string())
      return false;
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  }
  content = text;
  return true;
}

std::string take_messages(const json& from, std::string& into) {
  if (!from.is_array() || from.empty())
    return "a list of messages, not empty";
  constexpr std::array<std::string_view, 5> roles{
    "system", "developer", "user", "assistant", "tool"};
  json made = json::array();
  for (const auto& one : from) {
    if (!one.is_object() || !one.contains("role") || !one["role"].is_string())
      return "a list of messages, each with a role";
    auto message = one;
    const auto role = message["role"].get<std::string>();
    if (std::find(roles.begin(), roles.end(), role) == roles.end())
      return fmt::format("messages of the roles {}", fmt::join(roles, ", "));
    if (role == "developer")
      message["role"] = "system"; // The same by another name; templates know the older one.
    if (!message.contains("content"))
      message["content"] = nullptr;
    if (!join_parts(message["content"]))
      return "messages whose content is a text or a list of {\"type\": \"text\", \"text\": ...}";
    made.push_back(std::move(message));
  }
  into = made.dump();
  return {};
}

std::string take_tools(const json& from, std::string& into) {
  if (!from.is_array())
    return "a list of {\"type\": \"function\", \"function\": {\"name\": ...}}";
  for (const auto& one : from)
    if (!one.is_object() || !one.contains("function") || !one["function"].is_object()
        || !one["function"].contains("name"))
      return "a list of {\"type\": \"function\", \"function\": {\"name\": ...}}";
  into = from.empty() ? "" : from.dump();
  return {};
}

std::string take_object(const json& from, std::string& into) {
  if (!from.is_object())
    return "an object";
  into = from.dump();
  return {};
}

// -- fields ---------------------------------------------------------------------------------------

// What several fields decide together.
struct reading {
  completion_wish& wish;
  std::optional<std::uint32_t> max_tokens, max_completion_tokens;
  bool has_stream_options = false;
  bool without_tools = false; ///< "tool_choice": "none"
  bool refuse_unknown = true;
  std::size_t vocabulary = 0; ///< api_rules::vocabulary
};

constexpr std::uint64_t most_tokens = std::numeric_limits<std::int32_t>::max();

std::string take_stream_options(const json& from, reading& into) {
  into.has_stream_options = true;
  if (!from.is_object())
    return "an object";
  for (const auto& [key, value] : from.items()) {
    if (key == "include_usage" && !value.is_null()) {
      if (auto right = take(value, into.wish.include_usage); !right.empty())
        return "an object whose include_usage is " + right;
    } else if (key != "include_usage" && key != "include_obfuscation" && into.refuse_unknown) {
      return "an object with include_usage and nothing else";
    }
  }
  return {};
}

using reader = std::string (*)(const json&, reading&);
using field_table = std::map<std::string_view, reader>;

const field_table& shared_fields() {
  static const field_table all{
    {"model", [](const json& v, reading& r) { return take(v, r.wish.model); }},
    {"max_tokens",
     [](const json& v, reading& r) {
       return take_whole(v, r.max_tokens.emplace(), 0, most_tokens);
     }},
    {"temperature",
     [](const json& v, reading& r) { return take_real(v, r.wish.sampling.temperature, 0, 100); }},
    {"top_p",
     [](const json& v, reading& r) { return take_real(v, r.wish.sampling.top_p, 0, 1, true); }},
    {"top_k", [](const json& v, reading& r) { return take_top_k(v, r.wish.sampling.top_k); }},
    {"min_p", [](const json& v, reading& r) { return take_real(v, r.wish.sampling.min_p, 0, 1); }},
    {"repetition_penalty",
     [](const json& v, reading& r) {
       return take_real(v, r.wish.sampling.repetition_penalty, 0, 100, true);
     }},
    {"frequency_penalty",
     [](const json& v, reading& r) {
       return take_real(v, r.wish.sampling.frequency_penalty, -2, 2);
     }},
    {"presence_penalty",
     [](const json& v, reading& r) {
       return take_real(v, r.wish.sampling.presence_penalty, -2, 2);
     }},
    {"seed", [](const json& v, reading& r) { return take_seed(v, r.wish.seed); }},
    {"stop", [](const json& v, reading& r) { return take_stop(v, r.wish.stop); }},
    {"n", [](const json& v, reading& r) { return take_whole(v, r.wish.n, 1, most_tokens); }},
    {"stream", [](const json& v, reading& r) { return take(v, r.wish.stream); }},
    {"stream_options", take_stream_options},
    {"logit_bias",
     [](const json& v, reading& r) { return take_logit_bias(v, r.vocabulary, r.wish); }},
    {"response_format", [](const json& v, reading& r) { return take_response_format(v, r.wish); }},
    {"ignore_eos", [](const json& v, reading& r) { return take(v, r.wish.ignore_end); }},
  };
  return all;
}

const field_table& chat_fields() {
  static const field_table all{
    {"messages", [](const json& v, reading& r) { return take_messages(v, r.wish.messages); }},
    {"max_completion_tokens",
     [](const json& v, reading& r) {
       return take_whole(v, r.max_completion_tokens.emplace(), 0, most_tokens);
     }},
    {"logprobs", [](const json& v, reading& r) { return take_chat_logprobs(v, r.wish); }},
    {"top_logprobs", [](const json& v, reading& r) { return take_top_logprobs(v, r.wish); }},
    {"tools", [](const json& v, reading& r) { return take_tools(v, r.wish.tools); }},
    {"tool_choice",
     [](const json& v, reading& r) -> std::string {
       r.without_tools = v == "none";
       return v == "none" || v == "auto" ? "" : "\"none\" or \"auto\"";
     }},
    {"chat_template_kwargs",
     [](const json& v, reading& r) { return take_object(v, r.wish.template_arguments); }},
  };
  return all;
}

const field_table& text_fields() {
  static const field_table all{
    {"prompt", [](const json& v, reading& r) { return take_prompts(v, r.wish.prompts); }},
    {"logprobs", [](const json& v, reading& r) { return take_text_logprobs(v, r.wish); }},
  };
  return all;
}

// Known, without effect on the answer.
constexpr std::array<std::string_view, 8> ignored_fields{"user",
                                                         "store",
                                                         "metadata",
                                                         "service_tier",
                                                         "safety_identifier",
                                                         "prompt_cache_key",
                                                         "parallel_tool_calls",
                                                         "prompt_cache_retention"};

// Known, but not implemented; with these values they change nothing.
const std::map<std::string_view, json>& neutral_values() {
  static const std::map<std::string_view, json> all{
    {"functions", json::array()},
    {"function_call", "none"},
    {"modalities", {"text"}},
    {"echo", false},
    {"best_of", 1},
    {"suffix", ""},
  };
  return all;
}

const reader* find_field(std::string_view name, bool chat) {
  for (const auto* table : {&shared_fields(), chat ? &chat_fields() : &text_fields()})
    if (const auto found = table->find(name); found != table->end())
      return &found->second;
  return nullptr;
}

api_error unknown_field(const std::string& name, bool chat) {
  std::vector<std::string_view> known;
  for (const auto* table : {&shared_fields(), chat ? &chat_fields() : &text_fields()})
    for (const auto& [key, read] : *table)
      known.push_back(key);
  const auto guess = nearest(name, known);
  return {400,
          fmt::format("there is no parameter {}{}: what is not known is refused "
                      "(serve.unknown_parameters)",
                      name,
                      guess.empty() ? "" : fmt::format(" (did you mean {}?)", guess)),
          name,
          "unknown_parameter"};
}

std::optional<api_error>
read_field(const std::string& name, const json& value, bool chat, reading& into) {
  if (value.is_null())
    return std::nullopt;
  if (const auto* read = find_field(name, chat); read != nullptr) {
    if (const auto right = (*read)(value, into); !right.empty())
      return wrong_value(name, value, right);
    return std::nullopt;
  }
  if (const auto neutral = neutral_values().find(name); neutral != neutral_values().end()) {
    if (value == neutral->second)
      return std::nullopt;
    return api_error{400,
                     fmt::format("{} is not implemented; only {}, or leaving it away, works",
                                 name,
                                 neutral->second.dump()),
                     name,
                     "unsupported"};
  }
  const bool is_ignored =
    std::find(ignored_fields.begin(), ignored_fields.end(), name) != ignored_fields.end();
  if (!is_ignored && into.refuse_unknown)
    return unknown_field(name, chat);
  return std::nullopt;
}

} // namespace

std::optional<api_error>
read_completion(std::string_view body, bool chat, const api_rules& rules, completion_wish& into) {
  json object;
  if (auto wrong = parse_body(body, rules, object))
    return wrong;
  into.chat = chat;
  reading state{into, {}, {}, false, false, rules.refuse_unknown, rules.vocabulary};
  for (const auto& [name, value] : object.items())
    if (auto wrong = read_field(name, value, chat, state))
      return wrong;
  into.max_tokens = state.max_completion_tokens ? state.max_completion_tokens : state.max_tokens;
  if (state.without_tools)
    into.tools.clear();
  if (chat && into.messages.empty())
    return missing_field("messages");
  if (!chat && into.prompts.empty())
    return missing_field("prompt");
  if (state.has_stream_options && !into.stream)
    return api_error{
      400, "stream_options goes with stream = true only", "stream_options", "invalid_value"};
  if (chat && into.top_logprobs > 0 && !into.with_logprobs)
    return api_error{
      400, "top_logprobs goes with logprobs = true only", "top_logprobs", "invalid_value"};
  if (auto wrong = read_schema(body, into))
    return wrong;
  const auto prompts = chat ? std::size_t{1} : into.prompts.size();
  if (prompts * into.n > rules.max_choices)
    return api_error{400,
                     fmt::format("{} prompts with n = {} are {} answers; allowed are {} "
                                 "(serve.max_choices)",
                                 prompts,
                                 into.n,
                                 prompts * into.n,
                                 rules.max_choices),
                     prompts > rules.max_choices ? "prompt" : "n",
                     "invalid_value"};
  return std::nullopt;
}

} // namespace troupe::actors::serve
