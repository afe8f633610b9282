#include "actors/serve/answer_fields.hpp"

#include "compute/chat/value_text.hpp"
#include "compute/grammar/json_schema.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace troupe::actors::serve {

using nlohmann::json;

namespace {

constexpr std::uint32_t most_logprobs = 20;
constexpr double most_bias = 100;
constexpr std::size_t most_schema_bytes = std::size_t{1} << 20;

std::optional<token_id> read_token(std::string_view text) {
  token_id token = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), token);
  const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return whole ? std::optional{token} : std::nullopt;
}

api_error wrong_schema(std::string what) {
  return {400, std::move(what), "response_format", "invalid_value"};
}

} // namespace

std::string take_chat_logprobs(const json& from, completion_wish& into) {
  return take(from, into.with_logprobs);
}

std::string take_top_logprobs(const json& from, completion_wish& into) {
  return take_whole(from, into.top_logprobs, 0, most_logprobs);
}

std::string take_text_logprobs(const json& from, completion_wish& into) {
  if (from == false)
    return {};
  into.with_logprobs = true;
  return take_whole(from, into.top_logprobs, 0, most_logprobs);
}

std::string take_logit_bias(const json& from, std::size_t vocabulary, completion_wish& into) {
  const auto right = fmt::format("an object of token ids (\"0\" to \"{}\"), each once, with a "
                                 "number from {} to {}",
                                 vocabulary - 1,
                                 -most_bias,
                                 most_bias);
  if (!from.is_object())
    return right;
  into.bias.clear();
  std::map<token_id, float> biases;
  for (const auto& [key, value] : from.items()) {
    const auto token = read_token(key);
    float bias = 0;
    if (!token || *token >= vocabulary || !take_real(value, bias, -most_bias, most_bias).empty()
        || !biases.emplace(*token, bias).second)
      return right;
  }
  for (const auto& [token, bias] : biases)
    into.bias.push_back({token, bias});
  return {};
}

std::string take_response_format(const json& from, completion_wish& into) {
  constexpr auto right = "{\"type\": \"text\"}, {\"type\": \"json_object\"} or {\"type\": "
                         "\"json_schema\", \"json_schema\": {\"name\": ..., \"schema\": {...}}}";
  into.schema.clear();
  into.follows_schema = false;
  if (!from.is_object() || !from.contains("type"))
    return right;
  const auto& type = from["type"];
  if (type == "text")
    return {};
  if (type == "json_object") {
    into.schema = R"({"type": "object"})";
    return {};
  }
  const bool has_schema = type == "json_schema" && from.contains("json_schema")
                          && from["json_schema"].is_object()
                          && from["json_schema"].contains("schema");
  if (!has_schema)
    return right;
  into.follows_schema = true;
  return {};
}

std::optional<api_error> read_schema(std::string_view body, completion_wish& into) {
  if (into.follows_schema) {
    // Every step was there when the field was read.
    const auto whole = compute::chat::parse_json(body);
    if (!whole)
      return wrong_schema(whole.error().what);
    const auto* found = &*whole;
    for (const auto* name : {"response_format", "json_schema", "schema"}) {
      const auto* object = found->as_dictionary();
      found = object != nullptr ? object->find(name) : nullptr;
      if (found == nullptr)
        return wrong_schema("response_format has no schema");
    }
    std::string_view unwritable;
    into.schema = compute::chat::to_json(*found, {}, most_schema_bytes, unwritable);
  }
  if (into.schema.empty())
    return std::nullopt;
  if (const auto compiled = compute::compile_schema(into.schema); !compiled)
    return wrong_schema("the JSON schema: " + compiled.error().what);
  return std::nullopt;
}

} // namespace troupe::actors::serve
