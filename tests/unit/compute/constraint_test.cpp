// Answers drawn at random under a grammar: each parses and is valid, on every kind of tokenizer.

#include "compute/grammar/constraint.hpp"
#include "compute/sampler.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>

using namespace troupe;
using namespace troupe::compute;
using nlohmann::json;

namespace {

std::shared_ptr<const tokenizer> words_of(const std::string& name) {
  auto folder = name == "demo" ? std::string(TROUPE_SOURCE_DIR "/config/demo")
                               : TROUPE_SOURCE_DIR "/tests/golden/tokenizer/" + name;
  auto opened = tokenizer::open(folder);
  BOOST_REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().what));
  return std::move(*opened);
}

/// The part of JSON schema that these tests use, written down a second time and the other way
/// round: a value is asked, nothing is built.
bool is_valid(const json& what, const json& schema, const json& root) {
  if (schema.is_boolean())
    return schema.get<bool>();
  if (schema.contains("$ref"))
    return is_valid(
      what, root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))), root);
  if (schema.contains("const"))
    return what == schema["const"];
  if (schema.contains("enum"))
    return std::find(schema["enum"].begin(), schema["enum"].end(), what) != schema["enum"].end();
  if (schema.contains("anyOf"))
    return std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(), [&](const json& one) {
      return is_valid(what, one, root);
    });
  auto type = schema.value("type", std::string());
  if (type == "integer" || type == "number")
    return type == "integer" ? what.is_number_integer() : what.is_number();
  if (type == "null" || type == "boolean")
    return type == "null" ? what.is_null() : what.is_boolean();
  if (type == "string") {
    if (!what.is_string())
      return false;
    auto text = what.get<std::string>();
    auto length = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    return length >= schema.value("minLength", std::size_t{0})
           && length <= schema.value("maxLength", std::string::npos);
  }
  if (type == "array")
    return what.is_array() && what.size() >= schema.value("minItems", std::size_t{0})
           && what.size() <= schema.value("maxItems", std::string::npos)
           && std::all_of(what.begin(), what.end(), [&](const json& item) {
                return is_valid(item, schema.value("items", json(true)), root);
              });
  if (type == "object") {
    if (!what.is_object())
      return false;
    for (const auto& key : schema.value("required", json::array()))
      if (!what.contains(key.get<std::string>()))
        return false;
    auto properties = schema.value("properties", json::object());
    return std::all_of(what.items().begin(), what.items().end(), [&](const auto& entry) {
      auto more = schema.value("additionalProperties", json(true));
      return is_valid(entry.value(), properties.value(entry.key(), more), root);
    });
  }
  return true;
}

const std::string weather = R"({"type": "object", "properties": {
  "place": {"type": "string", "maxLength": 12},
  "days": {"type": "integer"},
  "units": {"enum": ["C", "F", null]},
  "wind": {"anyOf": [{"type": "number"}, {"type": "null"}]},
  "spots": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/spot"}}},
  "required": ["place", "units"], "additionalProperties": false,
  "$defs": {"spot": {"type": "object", "properties": {"x": {"type": "number"},
    "y": {"type": "boolean"}}, "required": ["x", "y"], "additionalProperties": false}}})";

const char* const schemas[] = {
  R"({"type": "integer"})",
  R"({"type": "number"})",
  R"({"type": "string", "minLength": 3, "maxLength": 20})",
  R"({"enum": ["red", "green", "light green", 5, {"a": [1, null]}]})",
  R"({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5})",
  R"({"anyOf": [{"type": "null"},
                {"type": "array", "maxItems": 2, "items": {"type": "integer"}}]})",
};

struct drawn {
  std::vector<token_id> tokens;
  std::string text;
  bool ended = false;
};

/// Logits without any sense, so that only the mask keeps the answer together.
drawn draw(constraint& follows,
           const tokenizer& words,
           token_id end,
           std::uint64_t seed,
           std::size_t most = 400) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(words.vocabulary_size());
  sampling wish;
  wish.temperature = 1;
  wish.seed = seed;
  drawn made;
  while (made.tokens.size() < most) {
    for (auto& one : logits)
      one = normal(random);
    auto allowed = follows.allowed();
    BOOST_REQUIRE_MESSAGE(allowed, (allowed ? "" : allowed.error().what));
    sampling_rules rules;
    rules.allowed = *allowed;
    auto chosen = sample(logits, wish, {}, made.tokens.size(), rules);
    BOOST_REQUIRE_MESSAGE(chosen, (chosen ? "" : chosen.error().what));
    BOOST_REQUIRE(follows.accept(chosen->token));
    made.tokens.push_back(chosen->token);
    if (chosen->token == end) {
      made.ended = true;
      break;
    }
  }
  auto shown = made.tokens;
  if (made.ended)
    shown.pop_back();
  auto text = words.decode(shown, true);
  BOOST_REQUIRE(text);
  made.text = *text;
  return made;
}

std::unique_ptr<constraint>
make(constraint_maker& maker, const std::string& schema, std::vector<token_id> ends) {
  auto made = maker.make(schema, std::move(ends));
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  return std::move(*made);
}

void check_answers(const std::string& vocabulary, const std::string& schema, int rounds) {
  auto words = words_of(vocabulary);
  token_id end = words->eos().value_or(0);
  constraint_maker maker(words);
  auto wanted = json::parse(schema);
  for (int round = 0; round < rounds; ++round) {
    auto follows = make(maker, schema, {end});
    auto answer = draw(*follows, *words, end, static_cast<std::uint64_t>(round));
    BOOST_TEST_CONTEXT(vocabulary << " " << schema << " gave " << answer.text) {
      BOOST_TEST(answer.ended);
      auto parsed = json::parse(answer.text, nullptr, false);
      BOOST_REQUIRE(!parsed.is_discarded());
      BOOST_TEST(is_valid(parsed, wanted, wanted));
    }
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(every_answer_parses_and_is_valid) {
  for (auto schema : schemas)
    check_answers("demo", schema, 30);
  check_answers("demo", weather, 60);
}

BOOST_AUTO_TEST_CASE(every_kind_of_vocabulary_can_write_it) {
  for (auto vocabulary :
       {"llama3", "qwen2", "llama2_new", "sentencepiece_bpe", "sentencepiece_unigram"}) {
    auto words = words_of(vocabulary);
    bool all_bytes = true; // a small vocabulary may have no quote
    for (auto piece : {"\"", "{", "}", ":", ","})
      all_bytes &= words->id_of(piece).has_value() || words->id_of("<0x22>").has_value();
    if (!all_bytes) {
      constraint_maker maker(words);
      auto follows = make(maker, R"({"type": "object"})", {0});
      auto allowed = follows->allowed();
      BOOST_TEST_MESSAGE(vocabulary << " has no signs of JSON: "
                                    << (allowed ? "allowed" : allowed.error().what));
      continue;
    }
    check_answers(vocabulary, weather, 10);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_cut_is_the_start_of_a_valid_one) {
  auto words = words_of("demo");
  token_id end = *words->eos();
  constraint_maker maker(words);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto follows = make(maker, R"({"type": "object"})", {end});
    auto answer = draw(*follows, *words, end, seed, 60);
    if (answer.ended) {
      BOOST_TEST(!json::parse(answer.text, nullptr, false).is_discarded(), answer.text);
      continue;
    }
    BOOST_TEST(!follows->complete(), answer.text);
  }
}

BOOST_AUTO_TEST_CASE(the_same_tokens_lead_to_the_same_place) {
  auto words = words_of("demo");
  token_id end = *words->eos();
  constraint_maker maker(words);
  auto first = make(maker, weather, {end});
  auto answer = draw(*first, *words, end, 5);
  for (std::size_t cut = 0; cut < answer.tokens.size(); ++cut) {
    auto again = make(maker, weather, {end}); // as after a fault
    for (std::size_t at = 0; at < cut; ++at)
      BOOST_REQUIRE(again->accept(answer.tokens[at]));
    auto allowed = again->allowed();
    BOOST_REQUIRE(allowed);
    auto whole = make(maker, weather, {end});
    std::vector<std::uint64_t> step_by_step;
    for (std::size_t at = 0; at <= cut; ++at) {
      auto now = whole->allowed();
      BOOST_REQUIRE(now);
      step_by_step.assign(now->begin(), now->end());
      if (at < cut)
        BOOST_REQUIRE(whole->accept(answer.tokens[at]));
    }
    BOOST_TEST(
      std::equal(allowed->begin(), allowed->end(), step_by_step.begin(), step_by_step.end()));
  }
}

BOOST_AUTO_TEST_CASE(a_mask_has_exactly_the_tokens_that_accept_takes) {
  auto words = words_of("demo");
  token_id end = *words->eos();
  constraint_maker maker(words);
  auto follows = make(maker, weather, {end});
  auto answer = draw(*follows, *words, end, 8);
  for (std::size_t cut = 0; cut < answer.tokens.size(); cut += 3) {
    auto base = make(maker, weather, {end});
    for (std::size_t at = 0; at < cut; ++at)
      BOOST_REQUIRE(base->accept(answer.tokens[at]));
    auto allowed = base->allowed();
    BOOST_REQUIRE(allowed);
    std::vector<std::uint64_t> mask(allowed->begin(), allowed->end());
    std::size_t wrong = 0;
    for (token_id token = 0; token < words->vocabulary_size(); token += 7) {
      auto fresh = make(maker, weather, {end});
      for (std::size_t at = 0; at < cut; ++at)
        BOOST_REQUIRE(fresh->accept(answer.tokens[at]));
      bool has = (mask[token / 64] >> (token % 64) & 1) != 0;
      wrong += fresh->accept(token).has_value() != has;
    }
    BOOST_TEST(wrong == 0u);
  }
}

BOOST_AUTO_TEST_CASE(nothing_follows_the_end_and_special_tokens_are_no_text) {
  auto words = words_of("demo");
  token_id end = *words->eos(), start = *words->bos();
  constraint_maker maker(words);
  auto follows = make(maker, R"({"const": 5})", {end});
  BOOST_TEST(!follows->accept(end));
  BOOST_TEST(!follows->accept(start));
  BOOST_TEST(!follows->accept(999'999));
  auto five = words->encode("5", false);
  BOOST_REQUIRE(five);
  for (auto token : *five)
    BOOST_REQUIRE(follows->accept(token));
  BOOST_TEST(follows->complete());
  auto allowed = follows->allowed();
  BOOST_REQUIRE(allowed);
  std::size_t count = 0;
  for (auto bits : *allowed)
    count += static_cast<std::size_t>(__builtin_popcountll(bits));
  BOOST_TEST(count == 1u);
  BOOST_REQUIRE(follows->accept(end));
  BOOST_TEST(!follows->accept(end));
  BOOST_TEST(!follows->allowed());
}

BOOST_AUTO_TEST_CASE(a_long_bounded_text_does_not_gather_states_for_ever) {
  auto words = words_of("demo");
  token_id end = *words->eos();
  constraint_maker maker(words);
  auto follows = make(maker, R"({"type": "string", "minLength": 1500, "maxLength": 4096})", {end});
  auto answer = draw(*follows, *words, end, 3, 1500);
  auto parsed = json::parse(answer.text + (answer.ended ? "" : "\""), nullptr, false);
  BOOST_TEST(answer.text.size() > 1500u);
  if (answer.ended)
    BOOST_TEST(!parsed.is_discarded());
}
