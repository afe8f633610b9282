#include "config/cluster_file.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe;

namespace {

std::string mistake(std::string_view text, std::vector<std::string> overrides = {}) {
  auto settings = parse_cluster_text(text, "c.toml", overrides);
  BOOST_REQUIRE_MESSAGE(!settings, "accepted: " << text);
  BOOST_TEST((settings.error().code == errc::invalid_config));
  return settings.error().what;
}

// A correct file with one more line in [model] or in its node.
std::string model_line(std::string_view line) {
  return "[model]\npath = \"demo\"\n" + std::string{line} + "\n[[node]]\nname = \"a\"\n";
}

std::string node_line(std::string_view line) {
  return "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\n" + std::string{line} + "\n";
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

#define MUST_SAY(text, part)                                                                       \
  BOOST_TEST(has(text, part), "\"" << (part) << "\" is missing in:\n" << (text))

} // namespace

BOOST_AUTO_TEST_CASE(an_unknown_key_is_shown_with_the_nearest_and_all_keys_of_its_table) {
  BOOST_TEST(mistake(model_line("contxt = 4096"))
             == "c.toml:3: [model] has no key \"contxt\"; it has path, dtype, context, tokenizer, "
                "allow_vocabulary_padding\n"
                "   |\n"
                " 3 | contxt = 4096\n"
                "   | ^^^^^^ did you mean \"context\"?");
}

BOOST_AUTO_TEST_CASE(a_key_in_the_wrong_table_is_sent_to_the_right_one) {
  MUST_SAY(mistake(model_line("threads = 2")), "a key of [[node]]");
  MUST_SAY(mistake(node_line("pipeline = 2")), "a key of [parallel]");
  MUST_SAY(mistake("pipeline = 2\n" + node_line("")), "a key of [parallel]");
}

BOOST_AUTO_TEST_CASE(an_unknown_table_is_shown_with_the_nearest) {
  const auto text = mistake(node_line("[secruity]\n"));
  MUST_SAY(text, "there is no [secruity] in a cluster file");
  MUST_SAY(text, "did you mean \"security\"?");
}

BOOST_AUTO_TEST_CASE(a_wrong_type_says_what_it_is_and_what_it_must_be) {
  MUST_SAY(mistake(model_line("context = \"4096\"")), "model.context cannot be a string");
  MUST_SAY(mistake(model_line("context = \"4096\"")), "must be an integer from 0");
  MUST_SAY(mistake(model_line("context = 1.5")), "a number with a fraction");
  MUST_SAY(mistake(model_line("context = true")), "true or false");
  MUST_SAY(mistake(model_line("context = 1979-05-27")), "a date");
  MUST_SAY(mistake(model_line("dtype = 16")), "model.dtype cannot be an integer");
  MUST_SAY(mistake(model_line("tokenizer = []")), "model.tokenizer cannot be a list");
  MUST_SAY(mistake(node_line("pin = 1")), "node[0].pin cannot be an integer");
  MUST_SAY(mistake(node_line("devices = \"eth0\"")), "must be a list of strings");
  MUST_SAY(mistake(node_line("devices = [\"eth0\", 1]")), "a list with an integer in it");
  MUST_SAY(mistake(node_line("devices = [\"a\", \"a\"]")), "twice");
  MUST_SAY(mistake(node_line("memory = true")), "node[0].memory cannot be true or false");
  MUST_SAY(mistake("model = 1\n[[node]]\nname = \"a\"\n"), "model is a table, not an integer");
  MUST_SAY(mistake("[model]\npath = \"demo\"\n[node]\nname = \"a\"\n"), "write [[node]]");
  MUST_SAY(mistake("node = [1, 2]\n[model]\npath = \"demo\"\n"), "node is a table, not an integer");
  MUST_SAY(mistake("[[model]]\npath = \"demo\"\n[[node]]\nname = \"a\"\n"), "model is a table");
}

BOOST_AUTO_TEST_CASE(a_number_out_of_range_says_the_range) {
  MUST_SAY(mistake(node_line("port = 70000")), "must be an integer from 0 to 65535");
  MUST_SAY(mistake(node_line("port = -1")), "node[0].port cannot be -1");
  MUST_SAY(mistake(node_line("ranks = 0")), "must be an integer from 1 to");
  MUST_SAY(mistake(model_line("context = 99999999999999999999")), "the integer is too large");
  MUST_SAY(mistake(model_line("context = 0xFFFFFFFFFFFFFFFFFF")), "the integer is too large");
  MUST_SAY(mistake(node_line("[generate]\ntemperature = nan")), "cannot be nan");
  MUST_SAY(mistake(node_line("[generate]\ntemperature = inf")), "cannot be inf");
  MUST_SAY(mistake(node_line("[generate]\ntemperature = 1e999")), "the number is out of range");
  MUST_SAY(mistake(node_line("[generate]\ntop_p = 0")), "above 0 to 1");
}

BOOST_AUTO_TEST_CASE(a_word_that_is_not_known_gets_the_nearest) {
  MUST_SAY(mistake(model_line("dtype = \"bf61\"")), "did you mean \"bf16\"?");
  MUST_SAY(mistake(model_line("dtype = \"q4_0\"")),
           "\"auto\", \"f32\", \"f16\", \"bf16\", \"int8\", \"int4\"");
  MUST_SAY(mistake(node_line("[parallel]\nwire_dtype = \"int8\"")), "\"f32\", \"f16\", \"bf16\"");
  MUST_SAY(mistake(node_line("device = \"cuda\"")), "must be \"cpu\"");
  MUST_SAY(mistake(node_line("[cluster]\nlog = \"inf\"")), "did you mean \"info\"?");
}

BOOST_AUTO_TEST_CASE(a_size_that_is_none_is_refused) {
  for (const auto* size : {"\"2 Gb\"",
                           "\"\"",
                           "\"GiB\"",
                           "\"-1GiB\"",
                           "\"1e3\"",
                           "\"2GiBs\"",
                           "\"nan\"",
                           "\"inf\"",
                           "0",
                           "-5",
                           "1.5",
                           "\"99999999TiB\"",
                           "\"0.1B\"",
                           "\"0x10\"",
                           "9223372036854775807",
                           "\"2G\"",
                           "\" 2GiB\""})
    MUST_SAY(mistake(node_line(std::string{"memory = "} + size)), "must be \"auto\", a size");
}

BOOST_AUTO_TEST_CASE(a_path_that_cannot_be_one_is_refused) {
  MUST_SAY(mistake(model_line("tokenizer = \"\"")), "an empty string");
  MUST_SAY(mistake(model_line("tokenizer = \"~/x\"")), "write the whole path");
  MUST_SAY(mistake(model_line("tokenizer = \"a\\u0000b\"")), "NUL");
}

BOOST_AUTO_TEST_CASE(A17_a_weight_that_is_no_weight_is_named) {
  for (const auto* weight : {"0", "0.0", "-1", "-0.5", "nan", "inf", "\"1/1\"", "[1, 1]"}) {
    const auto text = mistake("[model]\npath = \"demo\"\n[parallel]\ntensor = 2\n[[node]]\n"
                              "name = \"a\"\nweight = 1\n[[node]]\nname = \"b\"\nweight = "
                              + std::string{weight});
    MUST_SAY(text, "node[1].weight cannot be");
    MUST_SAY(text, "must be a number above 0");
    MUST_SAY(text, "c.toml:10: ");
  }
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
  MUST_SAY(mistake("[[node]]\nname = \"a\"\n"), "[model] must have the key \"path\"");
  MUST_SAY(mistake("[model]\n[[node]]\nname = \"a\"\n"), "c.toml:1: [model] must have the key");
  MUST_SAY(mistake("[model]\npath = \"demo\"\n[[node]]\nranks = 1\n"),
           "c.toml:3: [[node]] must have the key \"name\"");
  MUST_SAY(mistake("[model]\npath = \"demo\"\n"), "there is no [[node]]");
  for (const auto* empty : {"", "\n", "# nothing\n", "\xEF\xBB\xBF"})
    MUST_SAY(mistake(empty), "the file is empty");
}

BOOST_AUTO_TEST_CASE(several_mistakes_are_told_together_and_the_rest_is_counted) {
  auto text = mistake(model_line("a = 1\ncontext = -1\ndtype = 3") + "port = 99999\n");
  MUST_SAY(text, "c.toml:3: ");
  MUST_SAY(text, "c.toml:4: ");
  MUST_SAY(text, "c.toml:5: ");
  MUST_SAY(text, "c.toml:8: ");
  std::string many;
  for (int i = 0; i < 25; ++i)
    many += "wrong" + std::to_string(i) + " = 1\n";
  text = mistake(model_line(many));
  MUST_SAY(text, "wrong9");
  BOOST_TEST(!has(text, "\"wrong10\""));
  MUST_SAY(text, "... and 15 more");
}

BOOST_AUTO_TEST_CASE(a_mistake_on_the_command_line_names_the_option) {
  const auto good = node_line("");
  BOOST_TEST(mistake(good, {"model.contxt=4096"}).find("--set model.contxt=4096: ") == 0u);
  MUST_SAY(mistake(good, {"model.contxt=4096"}), "did you mean \"context\"?");
  MUST_SAY(mistake(good, {"model.context=-1"}),
           "  | model.context=-1\n  |               ^^ must be an integer");
  MUST_SAY(mistake(good, {"model.context=many"}), "cannot be a string");
  MUST_SAY(mistake(good, {"modl.context=1"}), "did you mean \"model\"?");
  MUST_SAY(mistake(good, {"context=1"}), "not the name of a setting");
  MUST_SAY(mistake(good, {"model.context"}), "key=value");
  MUST_SAY(mistake(good, {""}), "key=value");
  MUST_SAY(mistake(good, {"=1"}), "key=value");
  MUST_SAY(mistake(good, {"node.b.threads=1"}), "there is no node \"b\"");
  MUST_SAY(mistake(good, {"node[1].threads=1"}), "there is no node[1]");
  MUST_SAY(mistake(good, {"node[-1].threads=1"}), "there is no node[-1]");
  MUST_SAY(mistake(good, {"node[99999999999999999999].threads=1"}), "there is no node[");
  MUST_SAY(mistake(good, {"node[.threads=1"}), "there is no node[");
  MUST_SAY(mistake(good, {"node.threads=1"}), "node.a.threads");
  MUST_SAY(mistake(good, {"node.a.=1"}), "not the name of a setting");
  MUST_SAY(mistake(good, {"nodes.x=1"}), "did you mean \"node\"?");
  MUST_SAY(mistake("[model]\npath = \"demo\"\n", {"node.a.threads=1"}), "no [[node]] to change");
  MUST_SAY(mistake(good, {"model.context=1\nname = 2"}), "cannot be a string");
  MUST_SAY(mistake(good, {"model.context=" + std::string(5000, '[')}), "nested deeper");
  MUST_SAY(mistake(good, {"model.context=\xFF"}), "not UTF-8");
}

BOOST_AUTO_TEST_CASE(a_syntax_mistake_has_file_line_and_drawing) {
  MUST_SAY(mistake("[model]\npath = \"demo\"\npath = \"x\"\n"), "c.toml:3: ");
  MUST_SAY(mistake("[model]\npath = \"demo\"\npath = \"x\"\n"), "already exists");
  MUST_SAY(mistake("[model]\npath = \"demo\n"), "2 | path = \"demo");
  MUST_SAY(mistake("[model]\n[model]\n"), "c.toml:2: ");
  for (const auto* text : {"=",
                           "x",
                           "x =",
                           "x = [1, 2",
                           "x = {a = 1",
                           "[x",
                           "[[x]",
                           "]",
                           "x = tru",
                           "x = 'a",
                           "x = \"\"\"a",
                           "x = \"\\q\"",
                           "x = 1 2",
                           "x = 2020-13-45",
                           "x = 0b12",
                           "x = 1__0",
                           "x = +",
                           "a.b = 1\na = 2",
                           "\"\" \"\" = 1"}) {
    const auto what = mistake(text);
    MUST_SAY(what, "c.toml:");
    BOOST_TEST(!has(what, "toml::"), what);
    BOOST_TEST(!has(what, "[error]"), what);
  }
}
