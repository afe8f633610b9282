#include "actors/cli/generate_lines.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <limits>
#include <map>
#include <type_traits>

namespace troupe::cli {

using actors::text_answer;
using actors::text_request;
using nlohmann::ordered_json;
using json = nlohmann::ordered_json; // the order of a schema's keys is that of the answer

namespace {

// Each reader says what would have been right, or nothing when it was. The library's own get<>()
// would turn -1 into a large number and 1.5 into 1.
template <class T>
std::string take(const json& from, T& into) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!from.is_boolean())
      return "true or false";
  } else if constexpr (std::is_unsigned_v<T>) {
    constexpr auto most = std::numeric_limits<T>::max();
    if (!from.is_number_unsigned() || from.get<std::uint64_t>() > most)
      return fmt::format("a whole number of 0 ... {}", most);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!from.is_number())
      return "a number";
  } else {
    if (!from.is_string())
      return "a text";
  }
  into = from.get<T>();
  return {};
}

template <class T>
std::string take_list(const json& from, std::vector<T>& into) {
  into.clear();
  if (!from.is_array())
    return "a list";
  for (const auto& one : from) {
    if (auto right = take(one, into.emplace_back()); !right.empty())
      return "a list, each element " + right;
  }
  return {};
}

std::string take_stop(const json& from, std::vector<std::string>& into) {
  if (!from.is_string())
    return take_list(from, into);
  into = {from.get<std::string>()};
  return {};
}

/// {"15": -100}, as OpenAI has it: ids are texts there.
std::string take_biases(const json& from, text_request& into) {
  constexpr auto right = "an object of token ids and numbers, such as {\"15\": -100}";
  into.bias.clear();
  if (!from.is_object())
    return right;
  for (const auto& [key, value] : from.items()) {
    compute::logit_bias one;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), one.token);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || !value.is_number())
      return right;
    one.bias = value.get<float>();
    into.bias.push_back(one);
  }
  return {};
}

/// An object, or true or false, as a schema is.
std::string take_schema(const json& from, text_request& into) {
  if (!from.is_object() && !from.is_boolean())
    return "a JSON schema";
  into.schema = from.dump(-1, ' ', false, json::error_handler_t::replace);
  return {};
}

using reader = std::string (*)(const json&, text_request&);

const std::map<std::string, reader>& readers() {
  static const std::map<std::string, reader> all{
    {"prompt", [](const json& v, text_request& r) { return take(v, r.prompt); }},
    {"tokens", [](const json& v, text_request& r) { return take_list(v, r.tokens); }},
    {"max_tokens", [](const json& v, text_request& r) { return take(v, r.max_tokens); }},
    {"stop", [](const json& v, text_request& r) { return take_stop(v, r.stop); }},
    {"ignore_end", [](const json& v, text_request& r) { return take(v, r.ignore_end); }},
    {"temperature", [](const json& v, text_request& r) { return take(v, r.sampling.temperature); }},
    {"top_k", [](const json& v, text_request& r) { return take(v, r.sampling.top_k); }},
    {"top_p", [](const json& v, text_request& r) { return take(v, r.sampling.top_p); }},
    {"min_p", [](const json& v, text_request& r) { return take(v, r.sampling.min_p); }},
    {"repetition_penalty",
     [](const json& v, text_request& r) { return take(v, r.sampling.repetition_penalty); }},
    {"frequency_penalty",
     [](const json& v, text_request& r) { return take(v, r.sampling.frequency_penalty); }},
    {"presence_penalty",
     [](const json& v, text_request& r) { return take(v, r.sampling.presence_penalty); }},
    {"logit_bias", [](const json& v, text_request& r) { return take_biases(v, r); }},
    {"top_logprobs", [](const json& v, text_request& r) { return take(v, r.top_logprobs); }},
    {"schema", [](const json& v, text_request& r) { return take_schema(v, r); }},
    {"seed", [](const json& v, text_request& r) { return take(v, r.sampling.seed); }},
  };
  return all;
}

error unknown_key(const std::string& key) {
  std::string known;
  for (const auto& [name, read] : readers())
    known += (known.empty() ? "" : ", ") + name;
  return {errc::invalid_argument, fmt::format("unknown key {}; known are {}", key, known)};
}

result<json> parse_object(std::string_view line) {
  try {
    return json::parse(line);
  } catch (const json::exception& mistake) {
    return error{errc::invalid_argument, mistake.what()};
  }
}

result<text_request> read_object(std::string_view line, const text_request& defaults) {
  const auto object = parse_object(line);
  if (!object)
    return object.error();
  auto made = defaults;
  for (const auto& [key, value] : object->items()) {
    const auto found = readers().find(key);
    if (found == readers().end())
      return unknown_key(key);
    if (const auto right = found->second(value, made); !right.empty())
      return error{errc::invalid_argument,
                   fmt::format("key {}: {} found, {} would work",
                               key,
                               value.dump(-1, ' ', false, json::error_handler_t::replace),
                               right)};
  }
  if (made.prompt.empty() && made.tokens.empty())
    return error{errc::invalid_argument, "needs a prompt (text) or tokens (list of ids)"};
  return made;
}

} // namespace

result<std::vector<text_request>>
read_prompt_lines(std::string_view text, std::string_view name, const text_request& defaults) {
  std::vector<text_request> made;
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos)
      continue;
    if (line.front() != '{') {
      made.push_back(defaults);
      made.back().prompt = line;
      continue;
    }
    auto request = read_object(line, defaults);
    if (!request)
      return with_context(fmt::format("{}:{}", name, number), request.error());
    made.push_back(std::move(*request));
  }
  if (made.empty())
    return error{errc::invalid_argument, fmt::format("{} holds no prompt", name)};
  return made;
}

std::string answer_json(std::size_t index,
                        const text_request& request,
                        const text_answer& answer,
                        const actors::simulated_request* forecast) {
  ordered_json made{{"index", index}};
  if (request.tokens.empty())
    made["prompt"] = request.prompt;
  else
    made["prompt_ids"] = request.tokens;
  made["text"] = answer.text;
  made["tokens"] = answer.tokens;
  made["logprobs"] = answer.logprobs;
  if (request.top_logprobs > 0) {
    auto& places = made["top_logprobs"] = ordered_json::array();
    for (const auto& place : answer.top) {
      auto& told = places.emplace_back(ordered_json::array());
      for (const auto& one : place)
        told.push_back({{"token", one.token}, {"logprob", one.logprob}});
    }
  }
  made["finish"] = answer.finish;
  if (answer.finish == "error") {
    made["error"] = answer.what;
    made["error_code"] = to_string(answer.code);
  }
  made["prompt_tokens"] = answer.prompt_tokens;
  made["answer_tokens"] = answer.tokens.size();
  made["queued_s"] = answer.queued_s;
  made["first_token_s"] = answer.first_token_s;
  made["total_s"] = answer.total_s;
  if (forecast != nullptr) {
    made["forecast_first_token_s"] = forecast->first_token_s;
    made["forecast_total_s"] = forecast->total_s;
  }
  if (request.with_digests) {
    auto digests = ordered_json::array();
    for (const auto digest : answer.digests)
      digests.push_back(fmt::format("{:016x}", digest));
    made["digests"] = std::move(digests);
  }
  return made.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe::cli
