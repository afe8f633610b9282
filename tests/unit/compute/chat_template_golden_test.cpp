// Every template and conversation of the fixtures, against what Jinja made of them
// (tests/golden/make_chat_fixtures.py). Where Jinja raised an error Troupe gives one too.

#include "compute/chat/chat_template.hpp"
#include "compute/chat/value_text.hpp"
#include "tests/paths.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace troupe;
using namespace troupe::compute::chat;
using nlohmann::ordered_json;

namespace {

const std::filesystem::path golden = TROUPE_SOURCE_DIR "/tests/golden/chat";

ordered_json load(const std::string& name) {
  std::ifstream stream(golden / name);
  BOOST_REQUIRE_MESSAGE(stream, name << " is there");
  return ordered_json::parse(stream);
}

std::string source_of(const std::string& name) {
  std::ifstream stream(golden / "templates" / (name + ".jinja"), std::ios::binary);
  BOOST_REQUIRE_MESSAGE(stream, name << " is there");
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

value as_value(const ordered_json& json) {
  auto parsed = parse_json(json.dump());
  BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().what));
  return *parsed;
}

/// "2024-07-26T09:05:03" of the time zone of here, as it was of the fixtures' maker.
std::chrono::system_clock::time_point local_time(const std::string& text) {
  std::tm parts{};
  std::istringstream(text) >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S");
  parts.tm_isdst = -1;
  return std::chrono::system_clock::from_time_t(std::mktime(&parts));
}

const auto now = local_time("2024-07-26T09:05:03");

result<std::string> render(const std::string& source,
                           const value& messages,
                           const render_options& options,
                           const dictionary& constants) {
  auto parsed = chat_template::parse(source, "test");
  if (!parsed)
    return parsed.error();
  return (*parsed)->render(messages, options, constants);
}

void check_same(const result<std::string>& made, const ordered_json& expected) {
  if (expected.contains("error")) {
    BOOST_CHECK_MESSAGE(
      !made, "Jinja says: " << expected["error"] << "\nTroupe makes: " << (made ? *made : ""));
    BOOST_CHECK(made || made.error().what.starts_with("test, line "));
    return;
  }
  BOOST_REQUIRE_MESSAGE(made,
                        "Jinja makes: " << expected["text"]
                                        << "\nTroupe says: " << (made ? "" : made.error().what));
  BOOST_CHECK_EQUAL(*made, expected["text"].get<std::string>());
}

const char* const templates[] = {"chatml",
                                 "gemma",
                                 "gemma3",
                                 "llama2",
                                 "llama3",
                                 "llama31",
                                 "macros",
                                 "mistral",
                                 "qwen25",
                                 "qwen3",
                                 "smollm2",
                                 "tinyllama"};

} // namespace

BOOST_DATA_TEST_CASE(a_template_makes_what_jinja_makes, templates, name) {
  auto fixture = load("expected.json");
  BOOST_REQUIRE_EQUAL(fixture["now"], "2024-07-26T09:05:03");
  BOOST_REQUIRE_EQUAL(std::size(templates), fixture["expected"].size());
  auto source = source_of(name);
  auto constants = as_value(fixture["constants"]);
  BOOST_REQUIRE_GT(fixture["cases"].size(), 20u);
  for (const auto& [conversation, content] : fixture["cases"].items()) {
    BOOST_TEST_CONTEXT(name << " with " << conversation) {
      render_options options;
      options.now = now;
      if (content.contains("tools"))
        options.tools = as_value(content["tools"]);
      options.add_generation_prompt = content.value("add_generation_prompt", true);
      if (content.contains("variables"))
        options.variables = *as_value(content["variables"]).as_dictionary();
      check_same(render(source, as_value(content["messages"]), options, *constants.as_dictionary()),
                 fixture["expected"][std::string(name)][conversation]);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_construct_makes_what_jinja_makes) {
  auto fixture = load("constructs.json");
  auto variables = as_value(fixture["variables"]);
  BOOST_REQUIRE_GT(fixture["constructs"].size(), 150u);
  for (const auto& construct : fixture["constructs"]) {
    auto source = construct["template"].get<std::string>();
    BOOST_TEST_CONTEXT(source) {
      render_options options;
      options.now = now;
      check_same(render(source, value(), options, *variables.as_dictionary()), construct);
    }
  }
}
