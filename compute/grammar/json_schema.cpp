#include "compute/grammar/json_schema.hpp"

#include "compute/chat/value_text.hpp"
#include "compute/grammar/json_texts.hpp"
#include "compute/grammar/schema_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

namespace troupe::compute {

namespace {

using chat::dictionary;
using chat::value;
using node_id = grammar::node_id;

constexpr std::size_t most_schema_bytes = std::size_t{256} << 10;
constexpr std::size_t most_repeats = 4096; ///< Of characters and items that have a bound.
constexpr std::size_t most_nested = 64;    ///< Schemas in schemas.

std::string written(const value& what) {
  chat::json_style style;
  style.item_separator = ",";
  style.key_separator = ":";
  std::string_view unwritable;
  return to_json(what, style, most_schema_bytes, unwritable);
}

class compiler {
public:
  explicit compiler(const value& root)
    : root_(root), character_(add_character_rule(to_)), any_(add_any_rules(to_, character_)) {}

  result<std::shared_ptr<const grammar>> compile() {
    auto start = to_.node(), end = to_.node(), rule = rule_of("#", root_, "the schema");
    to_.end(end);
    // Vocabularies of sentencepiece begin a text with a space.
    auto value_start = to_.node();
    to_.jump(start, value_start);
    to_.byte(start, ' ', value_start);
    to_.call(value_start, rule, end);
    if (to_.full())
      fail(errc::invalid_argument,
           "the schema",
           fmt::format("it is too large: more than {} places", grammar_builder::most_nodes));
    if (!problem_ && to_.has_left_recursion())
      fail(errc::invalid_argument, "the schema", "a $ref leads to itself and to nothing else");
    if (!problem_ && !to_.prune(start))
      fail(errc::invalid_argument, "the schema", "it allows no finite value");
    if (problem_)
      return *problem_;
    return std::shared_ptr<const grammar>(std::make_shared<grammar>(to_.take(start)));
  }

private:
  void fail(errc code, const std::string& path, std::string_view sentence) {
    if (!problem_)
      problem_ = error{code, fmt::format("{}: {}", path, sentence)};
  }

  void wrong(const std::string& path, std::string_view key, std::string_view wanted) {
    fail(errc::invalid_argument, path, fmt::format("\"{}\" must be {}", key, wanted));
  }

  /// A rule of its own, for what is used more than once; by the name under which it is known.
  node_id rule_of(const std::string& name, const value& schema, const std::string& path) {
    auto [known, fresh] = rules_.try_emplace(name, node_id{});
    if (!fresh)
      return known->second;
    auto start = known->second = to_.node();
    auto end = to_.node();
    to_.end(end);
    add(schema, start, end, path);
    return start;
  }

  /// The texts of `schema` between the two nodes.
  void add(const value& schema, node_id from, node_id end, const std::string& path) {
    if (problem_ || to_.full())
      return;
    if (auto truth = schema.as_boolean()) {
      if (*truth)
        to_.call(from, any_.value, end);
      return;
    }
    auto what = schema.as_dictionary();
    if (what == nullptr)
      return fail(errc::invalid_argument, path, "it must be an object, or true or false");
    if (++depth_ > most_nested)
      fail(
        errc::invalid_argument, path, fmt::format("it is nested more than {} deep", most_nested));
    else if (check_keywords(*what, path))
      add_object(*what, from, end, path);
    --depth_;
  }

  bool check_keywords(const dictionary& schema, const std::string& path) {
    for (const auto& [key, content] : schema.entries())
      if (!is_annotation(key) && !is_keyword(key)) {
        fail(errc::unsupported,
             path,
             fmt::format(
               "the keyword \"{}\" is not supported; supported are: {}", key, keyword_list()));
        return false;
      }
    if (auto unique = schema.find("uniqueItems"); unique != nullptr && is_true(*unique)) {
      fail(errc::unsupported, path, "\"uniqueItems\": true is not supported");
      return false;
    }
    return true;
  }

  /// Whether nothing but `key`, `other` and annotations is said.
  bool stands_alone(const dictionary& schema,
                    std::string_view key,
                    const std::string& path,
                    std::string_view other = "") {
    for (const auto& [name, content] : schema.entries())
      if (name != key && name != other && !is_annotation(name)) {
        fail(
          errc::unsupported, path, fmt::format("\"{}\" beside \"{}\" is not supported", name, key));
        return false;
      }
    return true;
  }

  void add_object(const dictionary& schema, node_id from, node_id end, const std::string& path) {
    if (auto reference = schema.find("$ref")) {
      if (stands_alone(schema, "$ref", path))
        add_reference(*reference, from, end, path);
    } else if (auto only = schema.find("const")) {
      if (stands_alone(schema, "const", path, "type"))
        add_values({*only}, schema, from, end, path);
    } else if (auto values = schema.find("enum")) {
      if (!stands_alone(schema, "enum", path, "type"))
        return;
      if (values->as_list() == nullptr || values->as_list()->empty())
        return wrong(path, "enum", "a list of at least one value");
      add_values(*values->as_list(), schema, from, end, path);
    } else if (schema.find("anyOf") != nullptr) {
      add_alternatives(schema, "anyOf", from, end, path);
    } else if (schema.find("oneOf") != nullptr) {
      add_alternatives(schema, "oneOf", from, end, path);
    } else if (schema.find("allOf") != nullptr) {
      add_alternatives(schema, "allOf", from, end, path);
    } else {
      for (const auto& type : types_of(schema, path))
        add_type(type, schema, from, end, path);
    }
  }

  void add_values(const value::items& values,
                  const dictionary& schema,
                  node_id from,
                  node_id end,
                  const std::string& path) {
    auto allowed =
      schema.find("type") != nullptr ? types_of(schema, path) : std::vector<std::string>();
    std::vector<std::string> texts;
    for (const auto& one : values)
      if (allowed.empty() || std::any_of(allowed.begin(), allowed.end(), [&](const auto& type) {
            return is_of_type(one, type);
          }))
        texts.push_back(written(one));
    to_.texts(from, std::move(texts), end);
  }

  void add_alternatives(const dictionary& schema,
                        std::string_view key,
                        node_id from,
                        node_id end,
                        const std::string& path) {
    auto all = schema.find(key)->as_list();
    if (!stands_alone(schema, key, path))
      return;
    if (all == nullptr || all->empty())
      return wrong(path, key, "a list of at least one schema");
    if (key == "allOf" && all->size() > 1)
      return fail(errc::unsupported, path, "\"allOf\" of several schemas is not supported");
    if (key == "oneOf" && !differ_in_type(*all))
      return fail(errc::unsupported,
                  path,
                  "\"oneOf\" is supported where the alternatives have \"type\"s of which no value "
                  "has two; \"anyOf\" is always");
    for (std::size_t at = 0; at < all->size(); ++at)
      add((*all)[at], from, end, fmt::format("{}.{}[{}]", path, key, at));
  }

  static bool differ_in_type(const value::items& all) {
    std::vector<std::string> seen;
    for (const auto& one : all) {
      auto schema = one.as_dictionary();
      auto type = schema != nullptr ? schema->find("type") : nullptr;
      if (type == nullptr || type->as_text() == nullptr)
        return false;
      auto kind = *type->as_text() == "integer" ? "number" : *type->as_text();
      if (std::find(seen.begin(), seen.end(), kind) != seen.end())
        return false;
      seen.push_back(kind);
    }
    return true;
  }

  /// The types that "type" names, or that the keywords speak of; empty only after a problem.
  std::vector<std::string> types_of(const dictionary& schema, const std::string& path) {
    std::vector<std::string> made;
    auto named = schema.find("type");
    auto take = [&](const value& one) {
      if (one.as_text() == nullptr || !is_type(*one.as_text()))
        wrong(path, "type", "one of " + type_list() + ", or a list of them");
      else
        made.push_back(*one.as_text());
    };
    if (named != nullptr && named->as_list() != nullptr)
      for (const auto& one : *named->as_list())
        take(one);
    else if (named != nullptr)
      take(*named);
    if (named != nullptr)
      return made;
    auto speaks_of = [&](std::initializer_list<std::string_view> keys) {
      return std::any_of(
        keys.begin(), keys.end(), [&](auto key) { return schema.find(key) != nullptr; });
    };
    if (speaks_of({"properties", "required", "additionalProperties"}))
      return {"object"};
    if (speaks_of({"items", "prefixItems", "minItems", "maxItems"}))
      return {"array"};
    if (speaks_of({"minLength", "maxLength"}))
      return {"string"};
    return {"any"};
  }

  void add_type(const std::string& type,
                const dictionary& schema,
                node_id from,
                node_id end,
                const std::string& path) {
    if (type == "any") {
      to_.call(from, any_.value, end);
    } else if (type == "null") {
      to_.text(from, "null", end);
    } else if (type == "boolean") {
      to_.text(from, "true", end);
      to_.text(from, "false", end);
    } else if (type == "integer") {
      add_integer(to_, from, end);
    } else if (type == "number") {
      add_number(to_, from, end);
    } else if (type == "string") {
      auto [least, most] = bounds_of(schema, "minLength", "maxLength", path);
      add_string(to_, from, end, character_, least, most);
    } else if (type == "array") {
      add_array(schema, from, end, path);
    } else {
      add_entries(schema, from, end, path);
    }
  }

  struct bounds {
    std::size_t least = 0;
    std::optional<std::size_t> most;
  };

  bounds bounds_of(const dictionary& schema,
                   std::string_view least_key,
                   std::string_view most_key,
                   const std::string& path) {
    auto read = [&](std::string_view key) -> std::optional<std::size_t> {
      auto found = schema.find(key);
      if (found == nullptr)
        return std::nullopt;
      auto number = found->as_integer();
      if (number != nullptr && *number >= 0 && *number <= static_cast<std::int64_t>(most_repeats))
        return static_cast<std::size_t>(*number);
      wrong(path, key, fmt::format("a whole number of 0 ... {}", most_repeats));
      return std::nullopt;
    };
    bounds made{read(least_key).value_or(0), read(most_key)};
    if (made.most && *made.most < made.least)
      fail(errc::invalid_argument,
           path,
           fmt::format(
             "\"{}\" is {}, below \"{}\" of {}", most_key, *made.most, least_key, made.least));
    return made;
  }

  /// A rule for what an unbounded number of items or entries follows; any value without a schema.
  node_id rule_for(const value* schema, const std::string& path) {
    if (schema == nullptr)
      return any_.value;
    auto start = to_.node(), end = to_.node();
    to_.end(end);
    add(*schema, start, end, path);
    return start;
  }

  void add_array(const dictionary& schema, node_id from, node_id end, const std::string& path) {
    auto [least, most] = bounds_of(schema, "minItems", "maxItems", path);
    std::vector<node_id> first; // rules of items that have their own schema
    if (auto prefix = schema.find("prefixItems")) {
      if (prefix->as_list() == nullptr)
        return wrong(path, "prefixItems", "a list of schemas");
      for (std::size_t at = 0; at < prefix->as_list()->size(); ++at)
        first.push_back(
          rule_for(&(*prefix->as_list())[at], fmt::format("{}.prefixItems[{}]", path, at)));
    }
    auto items = schema.find("items");
    auto rest = rule_for(items, path + ".items"); // false: a rule without a text
    auto now = to_.node();
    to_.byte(from, '[', now);
    std::size_t fixed = std::max({least, first.size(), most.value_or(0)});
    for (std::size_t at = 0; at < fixed && !to_.full(); ++at) {
      if (at >= least)
        to_.byte(now, ']', end);
      if (most && at >= *most)
        return;
      auto before = at > 0 ? to_.node() : now;
      if (at > 0)
        add_separator(to_, now, ',', before);
      auto after = to_.node();
      to_.call(before, at < first.size() ? first[at] : rest, after);
      now = after;
    }
    to_.byte(now, ']', end);
    if (most)
      return;
    auto item = to_.node(), after = to_.node();
    if (fixed > 0)
      add_separator(to_, now, ',', item);
    else
      to_.jump(now, item);
    to_.call(item, rest, after);
    add_separator(to_, after, ',', item);
    to_.byte(after, ']', end);
  }

  struct property {
    std::string key;
    const value* schema; ///< Null: any value.
    bool required;
  };

  /// In the order of "properties"; keys that only "required" names come last.
  std::vector<property> properties_of(const dictionary& schema, const std::string& path) {
    std::vector<property> made;
    auto listed_properties = schema.find("properties");
    if (listed_properties != nullptr && listed_properties->as_dictionary() == nullptr)
      wrong(path, "properties", "an object of schemas");
    else if (listed_properties != nullptr)
      for (const auto& [key, content] : listed_properties->as_dictionary()->entries())
        made.push_back({key, &content, false});
    auto required = schema.find("required");
    if (required == nullptr)
      return made;
    if (required->as_list() == nullptr) {
      wrong(path, "required", "a list of keys");
      return made;
    }
    auto more = schema.find("additionalProperties");
    for (const auto& key : *required->as_list()) {
      if (key.as_text() == nullptr) {
        wrong(path, "required", "a list of keys");
        return made;
      }
      auto found = std::find_if(
        made.begin(), made.end(), [&](const auto& one) { return one.key == *key.as_text(); });
      if (found != made.end())
        found->required = true;
      else
        made.push_back({*key.as_text(), more, true});
    }
    return made;
  }

  void add_entries(const dictionary& schema, node_id from, node_id end, const std::string& path) {
    auto properties = properties_of(schema, path);
    auto more = schema.find("additionalProperties");
    auto first = to_.node();
    to_.byte(from, '{', first);
    if (properties.empty() && !(more != nullptr && more->as_boolean() && !*more->as_boolean()))
      return add_any_entries(more, first, end, path);
    // Two places before each property: nothing was written yet, or something was.
    auto fresh = first, begun = to_.node();
    for (const auto& one : properties) {
      auto next_fresh = to_.node(), next_begun = to_.node(), key = to_.node();
      add_separator(to_, begun, ',', key);
      to_.jump(fresh, key);
      auto colon = to_.node(), content = to_.node();
      to_.text(key, written(value(one.key)), colon);
      add_separator(to_, colon, ':', content);
      auto place = fmt::format("{}.properties.{}", path, one.key);
      if (one.schema != nullptr)
        add(*one.schema, content, next_begun, place);
      else
        to_.call(content, any_.value, next_begun);
      if (!one.required) {
        to_.jump(fresh, next_fresh);
        to_.jump(begun, next_begun);
      }
      fresh = next_fresh;
      begun = next_begun;
    }
    to_.byte(fresh, '}', end);
    to_.byte(begun, '}', end);
  }

  /// Any keys, with values of one schema.
  void add_any_entries(const value* schema, node_id first, node_id end, const std::string& path) {
    auto rule = rule_for(schema, path + ".additionalProperties");
    auto key = to_.node(), colon = to_.node(), content = to_.node(), after = to_.node();
    to_.byte(first, '}', end);
    to_.jump(first, key);
    add_string(to_, key, colon, character_, 0, std::nullopt);
    add_separator(to_, colon, ':', content);
    to_.call(content, rule, after);
    add_separator(to_, after, ',', key);
    to_.byte(after, '}', end);
  }

  void add_reference(const value& reference, node_id from, node_id end, const std::string& path) {
    auto text = reference.as_text();
    if (text == nullptr || !text->starts_with('#'))
      return fail(errc::unsupported,
                  path,
                  "\"$ref\" is supported within the schema: \"#\", \"#/$defs/name\"");
    auto target = schema_at(root_, *text);
    if (target == nullptr)
      return fail(
        errc::invalid_argument, path, fmt::format("\"$ref\": \"{}\" leads to nothing", *text));
    to_.call(from, rule_of(*text, *target, *text), end);
  }

  const value& root_;
  grammar_builder to_;
  node_id character_;
  any_rules any_;
  std::map<std::string, node_id> rules_;
  std::size_t depth_ = 0;
  std::optional<error> problem_;
};

} // namespace

result<std::shared_ptr<const grammar>> compile_schema(std::string_view schema) {
  if (schema.size() > most_schema_bytes)
    return error{
      errc::invalid_argument,
      fmt::format("it has {} bytes; schemas have at most {}", schema.size(), most_schema_bytes)};
  auto root = chat::parse_json(schema);
  if (!root)
    return root.error();
  return compiler(*root).compile();
}

} // namespace troupe::compute
