// The bodies of /tokenize and /detokenize.

#include "actors/serve/json_values.hpp"

#include <fmt/format.h>

namespace troupe::actors::serve {

using nlohmann::json;

std::optional<api_error>
read_tokenize(std::string_view body, const api_rules& rules, tokenize_wish& into) {
  json object;
  if (auto wrong = parse_body(body, rules, object))
    return wrong;
  bool has_text = false;
  for (const auto& [name, value] : object.items()) {
    std::string right;
    if (name == "prompt" || name == "content") {
      right = take(value, into.text);
      has_text = true;
    } else if (name == "add_special_tokens" || name == "add_special") {
      right = take(value, into.add_special);
    } else if (name == "return_token_strs" || name == "with_pieces") {
      right = take(value, into.with_pieces);
    } else if (name != "model" && rules.refuse_unknown) {
      return api_error{
        400, fmt::format("there is no parameter {}", name), name, "unknown_parameter"};
    }
    if (!right.empty())
      return wrong_value(name, value, right);
  }
  return has_text ? std::nullopt : missing_field("prompt");
}

std::optional<api_error>
read_detokenize(std::string_view body, const api_rules& rules, detokenize_wish& into) {
  json object;
  if (auto wrong = parse_body(body, rules, object))
    return wrong;
  for (const auto& [name, value] : object.items()) {
    if (name == "tokens") {
      if (!take_ids(value, into.tokens))
        return wrong_value(name, value, "a list of token ids, not empty");
    } else if (name != "model" && rules.refuse_unknown) {
      return api_error{
        400, fmt::format("there is no parameter {}", name), name, "unknown_parameter"};
    }
  }
  return into.tokens.empty() ? missing_field("tokens") : std::nullopt;
}

} // namespace troupe::actors::serve
