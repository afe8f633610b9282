// Templates that mean harm, messages that a person has to understand, and texts that are no JSON.

#include "compute/chat/chat_template.hpp"
#include "compute/chat/value_text.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <random>

using namespace troupe;
using namespace troupe::compute::chat;

namespace {

result<std::string> render(const std::string& source, const value& messages = value::items{}) {
  auto parsed = chat_template::parse(source, "model/chat_template.jinja");
  if (!parsed)
    return parsed.error();
  return (*parsed)->render(messages, {});
}

void check_refused(const std::string& source, errc code, const std::string& part) {
  auto began = std::chrono::steady_clock::now();
  auto made = render(source);
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  BOOST_TEST_CONTEXT(source.substr(0, 100)) {
    BOOST_REQUIRE_MESSAGE(!made, "made " << (made ? made->size() : 0) << " bytes");
    BOOST_CHECK_EQUAL(to_string(made.error().code), to_string(code));
    BOOST_CHECK_MESSAGE(made.error().what.find(part) != std::string::npos, made.error().what);
    BOOST_CHECK(made.error().what.starts_with("model/chat_template.jinja, line "));
    BOOST_CHECK_LT(seconds, 20); // about one where nobody else computes
  }
}

std::string repeated(const std::string& what, std::size_t times) {
  std::string all;
  for (; times > 0; --times)
    all += what;
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_hostile_template_ends_with_a_limit) {
  const std::string big = "{% for a in range(100000) %}{% for b in range(100000) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  check_refused(big + ends, errc::overloaded, "works too long");
  check_refused(big + "xxxxxxxx" + ends, errc::overloaded, "more than");
  check_refused(big + "{% set x = [a, b] %}" + ends, errc::overloaded, "works too long");
  check_refused(big + "{{ '' | trim }}" + ends, errc::overloaded, "works too long");
  check_refused(big + "{% set x = 'a'.strip %}" + ends, errc::overloaded, "works too long");
  check_refused("{% set n = namespace(x='ab') %}{% for i in range(100) %}{% set n.x = n.x ~ n.x "
                "%}{% endfor %}",
                errc::overloaded,
                "bytes");
  check_refused("{{ 'a' * 99999999999 }}", errc::overloaded, "bytes");
  check_refused("{{ [1] * 99999999999 }}", errc::overloaded, "works too long");
  check_refused("{{ range(100001) }}", errc::overloaded, "100000 numbers");
  check_refused("{% set n = namespace(x=[1]) %}{% for i in range(100) %}{% set n.x = n.x + n.x "
                "%}{% endfor %}",
                errc::overloaded,
                "works too long");
  check_refused("{% set n = namespace(x=[]) %}{% for i in range(100000) %}{% set n.x = [n.x] "
                "%}{% endfor %}{{ n.x }}",
                errc::invalid_argument,
                "nested more than 128 deep");
  check_refused("{% set n = namespace(x=[1], y=[1]) %}{% for i in range(100) %}{% set n.x = [n.x, "
                "n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
                errc::overloaded,
                "works too long");
  check_refused("{% set n = namespace(x=[1]) %}{% for i in range(100) %}{% set n.x = [n.x, n.x] "
                "%}{% endfor %}{{ n.x }}",
                errc::overloaded,
                "bytes");
  check_refused("{% set n = namespace(x=[1]) %}{% for i in range(100) %}{% set n.x = [n.x, n.x] "
                "%}{% endfor %}{{ n.x | tojson(indent=60) }}",
                errc::overloaded,
                "bytes");
  check_refused(
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", errc::overloaded, "inside of each other");
  check_refused("{% macro f() %}{{ f() ~ f() }}{% endmacro %}{{ f() }}",
                errc::overloaded,
                "inside of each other");
  check_refused("{{ 'a' | replace('', 'x' * 10000000) * 10 }}", errc::overloaded, "bytes");
  check_refused("{{ ('a' * 100000) | replace('a', 'x' * 100000) }}", errc::overloaded, "bytes");
  check_refused("{{ ('\\n' * 1000000) | indent(4000, blank=true) }}", errc::overloaded, "bytes");
}

BOOST_AUTO_TEST_CASE(a_template_that_is_nested_too_deep_is_refused_when_it_is_read) {
  check_refused("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}",
                errc::unsupported,
                "more than 100 deep");
  check_refused("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
                errc::unsupported,
                "more than 100 deep");
  check_refused("{{ " + repeated("not ", 5000) + "1 }}", errc::unsupported, "more than 100 deep");
  check_refused("{{ " + repeated("-", 5000) + "1 }}", errc::unsupported, "more than 100 deep");
  check_refused(repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000),
                errc::unsupported,
                "more than 100 deep");
  check_refused("{{ 1 " + repeated("+ 1 ", 50000) + "}}", errc::overloaded, "inside of each other");
  check_refused("{{ x" + repeated(".x", 50000) + "}}", errc::overloaded, "inside of each other");
  check_refused("{{ x" + repeated("|list", 50000) + "}}", errc::overloaded, "inside of each other");
  auto chained = render("{{ 1 " + repeated("~ 1 ", 50000) + "}}");
  BOOST_REQUIRE(chained);
  BOOST_CHECK_EQUAL(chained->size(), 50001u);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_said_with_its_place_and_what_would_work) {
  check_refused("a\n  {{ x | lenght }}",
                errc::unsupported,
                "line 2, column 8: no filter 'lenght'; there are: abs, ");
  check_refused("{% for in x %}{% endfor %}", errc::invalid_model, "a name to assign to belongs");
  check_refused("{% for () in x %}{% endfor %}", errc::invalid_model, "a name to assign to");
  check_refused("{% include 'x' %}", errc::unsupported, "no block 'include' here; there are: if,");
  check_refused("{{ x is nice }}", errc::unsupported, "no test 'nice'; there are: boolean, ");
  check_refused("\n\n{% if x %}", errc::invalid_model, "'{% endif %}' belongs here");
  check_refused("{{ 'x' }", errc::invalid_model, "line 1, column 8: '}' closes what is not open");
  check_refused("{{ 1", errc::invalid_model, "line 1, column 1: the tag that starts here never");
  check_refused("{{ messages[0].role }}",
                errc::invalid_argument,
                "line 1, column 15: a value that is needed here is undefined");
  check_refused("{{ some_name.x }}", errc::invalid_argument, "'some_name' is undefined");
  check_refused("ab{{ raise_exception('Turns!') }}", errc::invalid_argument, "column 21: Turns!");
  check_refused("{{ 'a'.format(1) }}", errc::unsupported, "type str have no method 'format'");
  check_refused("{{ messages.append(1) }}", errc::invalid_argument, "templates may not");
  check_refused("{{ '%s' % 1 }}", errc::unsupported, "'%' with a text is not supported");
  check_refused("{% for x in y recursive %}{% endfor %}", errc::unsupported, "recursive loops");
  check_refused("{{ 9223372036854775807 + 1 }}", errc::invalid_argument, "64 bits");
  check_refused("{{ 99999999999999999999 }}", errc::unsupported, "64 bits");
  check_refused("{{ (0 - 9223372036854775807 - 1) // -1 }}", errc::invalid_argument, "64 bits");
}

BOOST_AUTO_TEST_CASE(a_source_that_is_too_large_or_no_text_is_refused) {
  auto large = chat_template::parse(std::string((1 << 20) + 1, 'x'), "t");
  BOOST_REQUIRE(!large);
  BOOST_CHECK(large.error().what.find("at most 1048576") != std::string::npos);
  auto bytes = chat_template::parse("a\xFF", "t");
  BOOST_REQUIRE(!bytes);
  BOOST_CHECK(bytes.error().what.find("byte 1 is 0xff") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(any_mix_of_pieces_ends_with_a_text_or_an_error) {
  const std::vector<std::string> pieces = {
    "{{",      "}}",     "{%",       "%}",     "{#",       "#}",        "-",       "+",
    " ",       "\n",     "x",        "'a'",    "\"",       "\\",        "1",       "2.5",
    "(",       ")",      "[",        "]",      "{",        "}",         ":",       ",",
    ".",       "|",      "~",        "*",      "/",        "%",         "==",      "<",
    "if ",     "else ",  "elif ",    "endif ", "for ",     "in ",       "endfor ", "set ",
    "endset ", "macro ", "endmacro", "call ",  "endcall",  "filter ",   "raw ",    "endraw ",
    "is ",     "not ",   "and ",     "or ",    "none ",    "messages",  "loop",    "tojson",
    "upper",   "range",  "length",   "=",      "\xC3\xA9", "namespace", "join",    "sort"};
  std::mt19937 random(7);
  value messages(value::items{value(dictionary{{"role", "user"}, {"content", "Hi"}})});
  std::size_t parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string source = round % 2 == 0 ? "{{ " : "{% ";
    for (auto count = random() % 30; count > 0; --count)
      source += pieces[random() % pieces.size()];
    source += round % 2 == 0 ? " }}" : " %}";
    auto made = render(source, messages);
    parsed += made.has_value();
    BOOST_REQUIRE(made || !made.error().what.empty());
  }
  BOOST_CHECK_GT(parsed, 0u);
}

BOOST_AUTO_TEST_CASE(json_becomes_values_or_an_error_with_its_place) {
  auto made =
    parse_json(R"({"b": [1, -2.5, "x", null, true], "a": {}, "b2": 18446744073709551615})");
  BOOST_REQUIRE(made);
  BOOST_CHECK_EQUAL(to_text(*made, 1000),
                    "{'b': [1, -2.5, 'x', None, True], 'a': {}, 'b2': 1.8446744073709552e+19}");
  for (auto wrong : {"", "{", "[1,]", "{\"a\":}", "nul", "\"\xFF\"", "1 2", "[1e999]"})
    BOOST_CHECK_MESSAGE(!parse_json(wrong), wrong);
  auto deep = parse_json(std::string(1000, '[') + std::string(1000, ']'));
  BOOST_REQUIRE(!deep);
  BOOST_CHECK_EQUAL(deep.error().what, "it is not JSON: it is nested more than 128 deep");
}
