// Schemas as grammars: texts that are allowed, texts that are not, schemas that are refused.

#include "compute/grammar/json_schema.hpp"
#include "compute/grammar/byte_automaton.hpp"

#include <boost/test/unit_test.hpp>

#include <functional>
#include <random>

using namespace troupe;
using namespace troupe::compute;

namespace {

std::shared_ptr<const grammar> compiled(const std::string& schema) {
  auto made = compile_schema(schema);
  BOOST_REQUIRE_MESSAGE(made, schema << ": " << (made ? "" : made.error().what));
  return *made;
}

bool allows(const std::string& schema, const std::string& text) {
  byte_automaton automaton(compiled(schema));
  auto at = automaton.start();
  for (char byte : text)
    at = automaton.step(at, static_cast<std::uint8_t>(byte));
  BOOST_REQUIRE(at != byte_automaton::too_many);
  return automaton.accepts(at);
}

void check(const std::string& schema,
           const std::vector<std::string>& good,
           const std::vector<std::string>& bad) {
  for (const auto& text : good)
    BOOST_CHECK_MESSAGE(allows(schema, text), schema << " allows " << text);
  for (const auto& text : bad)
    BOOST_CHECK_MESSAGE(!allows(schema, text), schema << " refuses " << text);
}

void check_refused(const std::string& schema, errc code, const std::string& part) {
  auto made = compile_schema(schema);
  BOOST_REQUIRE_MESSAGE(!made, schema.substr(0, 200) << " is refused");
  BOOST_TEST(to_string(made.error().code) == to_string(code));
  BOOST_TEST(made.error().what.find(part) != std::string::npos, made.error().what);
}

} // namespace

BOOST_AUTO_TEST_CASE(plain_types_have_their_texts) {
  check(R"({"type": "null"})", {"null", " null"}, {"", "nul", "nulll", "  null"});
  check(R"({"type": "boolean"})", {"true", "false"}, {"True", "1"});
  check(R"({"type": "integer"})",
        {"0", "-0", "7", "-123", "123456789012345"},
        {"", "-", "01", "1.0", "1e3", "1234567890123456", "+1"});
  check(R"({"type": "number"})",
        {"0", "1.5", "-0.001", "1e5", "1E-07", "12.5e+10"},
        {".5", "1.", "1e", "1e123", "--1", "0x1", "NaN"});
  check(R"({"type": ["string", "null"]})", {"null", "\"a\""}, {"1"});
  check("true", {"null", "[]", "{}", "[1, {\"a\":[true]}, \"x\"]", "-1.5"}, {"", "[", "[1,]"});
  check("{}", {"1", "\"\""}, {"a"});
}

BOOST_AUTO_TEST_CASE(texts_in_quotes_are_utf_8_and_escaped) {
  check(R"({"type": "string"})",
        {R"("")",
         R"("a b")",
         "\"\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80\"",
         R"("\"\\\/\b\f\n\r\t")",
         R"("\u00e9\uD7FF\uffff")"},
        {"\"",
         "\"a",
         "\"\n\"",
         "\"\xFF\"",
         "\"\xC0\xAF\"",
         "\"\xED\xA0\x80\"",
         "\"\xF4\x90\x80\x80\"",
         R"("\x41")",
         R"("\u12")",
         R"("\ud800")",
         "\"a\"b",
         "'a'"});
  check(R"({"type": "string", "minLength": 2, "maxLength": 3})",
        {R"("ab")", "\"\xE4\xBD\xA0\xE4\xBD\xA0\"", R"("\n\u0041c")"},
        {R"("a")", R"("abcd")", R"("")"});
  check(R"({"type": "string", "maxLength": 0})", {R"("")"}, {R"("a")"});
  check(R"({"minLength": 1})", {R"("a")"}, {R"("")", "1"});
}

BOOST_AUTO_TEST_CASE(objects_keep_the_order_of_their_properties) {
  const std::string schema = R"({"type": "object", "properties": {
    "a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "null"}},
    "required": ["b"], "additionalProperties": false})";
  check(schema,
        {R"({"b":"x"})",
         R"({"a":1,"b":"x"})",
         R"({"a": 1, "b": "x", "c": null})",
         R"({"b":"x", "c":null})"},
        {"{}",
         R"({"a":1})",
         R"({"b":"x","a":1})",
         R"({"b":1})",
         R"({"b":"x",})",
         R"({,"b":"x"})",
         R"({"b":"x","d":1})",
         R"({ "b":"x"})",
         R"({"b" :"x"})"});
  check(R"({"type": "object", "properties": {"q\"\u00e9": {}}})",
        {"{}", "{\"q\\\"\xC3\xA9\":[1]}"},
        {R"({"q":1})"});
  check(R"({"type": "object"})", {"{}", R"({"x":1,"y":{"z":[]}})"}, {"[]", R"({"x"})", "{1:2}"});
  check(R"({"type": "object", "additionalProperties": {"type": "boolean"}})",
        {"{}", R"({"any":true, "more":false})"},
        {R"({"any":1})"});
  check(R"({"type": "object", "additionalProperties": false})", {"{}"}, {R"({"a":1})"});
  check(R"({"required": ["k"]})", {R"({"k":[1]})"}, {"{}"});
}

BOOST_AUTO_TEST_CASE(arrays_have_bounds_and_prefixes) {
  check(R"({"type": "array", "items": {"type": "integer"}})",
        {"[]", "[1]", "[1,2, 3]"},
        {"[,]", "[1,]", "[\"a\"]", "[1 ,2]", "[1"});
  check(R"({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2})",
        {"[null]", "[null,null]"},
        {"[]", "[null,null,null]"});
  check(R"({"minItems": 2})", {"[1,2]", "[1,2,3]"}, {"[]", "[1]"});
  check(R"({"maxItems": 0})", {"[]"}, {"[1]"});
  check(R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false,
            "minItems": 2})",
        {R"([1,"a"])"},
        {"[]", "[1]", R"(["a",1])", R"([1,"a",2])"});
  check(R"({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}})",
        {"[null]", "[null,1]", "[null,1,2]"},
        {"[1]", "[null,null]"});
}

BOOST_AUTO_TEST_CASE(values_alternatives_and_references) {
  check(R"({"enum": ["a", 1, null, {"k": [1.5, true]}]})",
        {R"("a")", "1", "null", R"({"k":[1.5,true]})"},
        {"2", R"("b")", R"({"k": [1.5,true]})"});
  check(R"({"enum": ["ab", "abc", "b"]})", {R"("ab")", R"("abc")"}, {R"("a")"});
  check(R"({"enum": ["", "a", "ab", "ab", "b", 1, 12, -1]})",
        {R"("")", R"("a")", R"("ab")", "1", "12", "-1"},
        {"2", "-", R"("abc")"});
  std::string many = R"({"enum": ["x0")";
  for (int value = 1; value < 20'000; ++value)
    many += ",\"x" + std::to_string(value) + "\"";
  check(many + "]}", {R"("x0")", R"("x19999")", R"("x777")"}, {R"("x20000")", R"("x")"});
  check(R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"});
  check(R"({"const": {"x": []}})", {R"({"x":[]})"}, {"{}"});
  check(R"({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"const": 1}}]})",
        {"5", "[1,1]"},
        {"[2]", "null"});
  check(R"({"oneOf": [{"type": "integer"}, {"type": "null"}]})", {"5", "null"}, {"true"});
  check(R"({"allOf": [{"type": "integer"}]})", {"5"}, {"true"});
  check(R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}})", {"null"}, {"1"});
  const std::string tree = R"({"type": "object", "properties": {"v": {"type": "integer"},
    "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["v", "next"]})";
  check(tree,
        {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
        {R"({"v":1})", R"({"v":1,"next":{}})"});
  // Paths that could be taken for one another.
  check(R"({"properties": {"a": {"type": "array", "items": {"type": "null"}},
            "a.items": {"type": "array", "items": {"type": "boolean"}}}})",
        {R"({"a":[null],"a.items":[true]})"},
        {R"({"a":[true]})", R"({"a.items":[null]})"});
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_refused_by_name) {
  for (std::string keyword : {"pattern",
                              "format",
                              "minimum",
                              "maximum",
                              "multipleOf",
                              "not",
                              "if",
                              "patternProperties",
                              "minProperties",
                              "contains",
                              "propertyNames",
                              "$dynamicRef",
                              "unevaluatedProperties",
                              "dependentRequired"})
    check_refused("{\"type\": \"string\", \"" + keyword + "\": 1}",
                  errc::unsupported,
                  "the keyword \"" + keyword + "\" is not supported; supported are: type, enum");
  check_refused(R"({"type": "object", "properties": {"a": {"items": {"pattern": "x"}}}})",
                errc::unsupported,
                "the schema.properties.a.items: the keyword \"pattern\"");
  check_refused(R"({"type": "array", "uniqueItems": true})", errc::unsupported, "uniqueItems");
  check_refused(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
                errc::unsupported,
                "\"anyOf\" is always");
  check_refused(R"({"allOf": [{}, {}]})", errc::unsupported, "allOf");
  check_refused(R"({"enum": ["a"], "minLength": 3})", errc::unsupported, "\"minLength\" beside");
  check_refused(R"({"$ref": "other.json"})", errc::unsupported, "within the schema");
}

BOOST_AUTO_TEST_CASE(what_is_no_schema_is_refused_with_its_place) {
  check_refused("", errc::invalid_argument, "not JSON");
  check_refused("[1]", errc::invalid_argument, "the schema: it must be an object");
  check_refused(R"({"type": "text"})", errc::invalid_argument, "one of null, boolean, object");
  check_refused(R"({"properties": {"a": 5}})", errc::invalid_argument, "properties.a: it must be");
  check_refused(R"({"properties": []})", errc::invalid_argument, "\"properties\" must be");
  check_refused(R"({"required": "a"})", errc::invalid_argument, "\"required\" must be");
  check_refused(R"({"maxLength": 5000})", errc::invalid_argument, "0 ... 4096");
  check_refused(R"({"minItems": 3, "maxItems": 2})", errc::invalid_argument, "below \"minItems\"");
  check_refused(R"({"enum": []})", errc::invalid_argument, "at least one value");
  check_refused("false", errc::invalid_argument, "no finite value");
  check_refused(R"({"type": "string", "enum": [1]})", errc::invalid_argument, "no finite value");
  check_refused(R"({"required": ["a"], "additionalProperties": false})",
                errc::invalid_argument,
                "no finite value");
  check_refused(R"({"$ref": "#"})", errc::invalid_argument, "leads to itself");
  check_refused(R"({"$ref": "#/$defs/x"})", errc::invalid_argument, "leads to nothing");
  check_refused(R"({"required": ["a"], "properties": {"a": {"$ref": "#"}}})",
                errc::invalid_argument,
                "no finite value");
  std::string deep;
  for (int level = 0; level < 100; ++level)
    deep += R"({"items": )";
  check_refused(deep + "{}" + std::string(100, '}'), errc::invalid_argument, "nested more than");
  std::string wide = R"({"properties": {)";
  for (int key = 0; key < 60; ++key)
    wide += (key > 0 ? ", " : "") + ("\"k" + std::to_string(key))
            + R"(": {"type": "string", "minLength": 4000})";
  check_refused(wide + "}}", errc::invalid_argument, "too large");
  check_refused(std::string(300'000, ' '), errc::invalid_argument, "at most 262144");
}

BOOST_AUTO_TEST_CASE(any_mix_of_keywords_is_a_grammar_or_an_error) {
  std::mt19937 random(11);
  const std::vector<std::string> keys = {"type",
                                         "enum",
                                         "const",
                                         "anyOf",
                                         "oneOf",
                                         "allOf",
                                         "$ref",
                                         "properties",
                                         "required",
                                         "items",
                                         "prefixItems",
                                         "minItems",
                                         "maxItems",
                                         "minLength",
                                         "maxLength",
                                         "title",
                                         "$defs",
                                         "additionalProperties"};
  const std::vector<std::string> plain = {"\"string\"",
                                          "\"object\"",
                                          "\"integer\"",
                                          "\"array\"",
                                          "1",
                                          "0",
                                          "-1",
                                          "2.5",
                                          "true",
                                          "false",
                                          "null",
                                          "\"#\"",
                                          "\"#/$defs/a\"",
                                          "\"#/properties/a\"",
                                          "[]",
                                          "{}",
                                          "[\"a\"]",
                                          "[1, null]"};
  std::function<std::string(int)> make = [&](int depth) -> std::string {
    auto kind = random() % 10;
    if (depth == 0 || kind < 3)
      return plain[random() % plain.size()];
    if (kind < 5) {
      std::string list = "[";
      for (auto count = random() % 3; count > 0; --count)
        list += make(depth - 1) + (count > 1 ? "," : "");
      return list + "]";
    }
    std::string entries = "{";
    for (auto count = random() % 4; count > 0; --count)
      entries += "\""
                 + (kind == 9 ? std::string(1, static_cast<char>('a' + random() % 3))
                              : keys[random() % keys.size()])
                 + "\":" + make(depth - 1) + (count > 1 ? "," : "");
    return entries + "}";
  };
  std::size_t grammars = 0;
  for (int round = 0; round < 5000; ++round) {
    auto made = compile_schema(make(5));
    if (!made) {
      BOOST_REQUIRE(!made.error().what.empty());
      continue;
    }
    ++grammars;
    byte_automaton automaton(*made);
    auto at = automaton.start();
    for (int byte = 0; byte < 50 && at != byte_automaton::nowhere; ++byte)
      at = automaton.step(at, static_cast<std::uint8_t>("{}[]\":,1ntrueals "[random() % 17]));
  }
  BOOST_TEST(grammars > 500u);
}
