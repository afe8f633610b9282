// Forecasts by the program: measured, kept, told next to what was reached; and scenarios.

#include "tests/paths.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>

using namespace troupe;
using namespace troupe::tests;
using nlohmann::json;

namespace {

const std::string scenarios = TROUPE_SOURCE_DIR "/config/scenarios/";

/// One process with one rank, whose program keeps figures in a folder of its own.
class forecast_cluster {
public:
  forecast_cluster() : where_("[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\nthreads = 1\n") {
    BOOST_REQUIRE(::setenv("XDG_CACHE_HOME", cache().c_str(), 1) == 0);
  }

  std::filesystem::path cache() const { return where_.folder() / "cache"; }

  outcome run(const std::vector<std::string>& arguments) const { return where_.run(arguments); }

  json plan_json() const {
    return json::parse(run({"plan", "FILE", "--json"}).all(), nullptr, false);
  }

private:
  cluster where_;
};

/// The object that was printed, behind what was said on standard error.
json parsed(const outcome& ran) {
  const auto text = ran.all();
  auto made = json::parse(text.substr(std::min(text.find('{'), text.size())), nullptr, false);
  BOOST_REQUIRE_MESSAGE(made.is_object(), ran.all());
  return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_host_is_measured_when_it_is_asked_and_known_from_then_on) {
  const forecast_cluster here;
  BOOST_TEST(here.run({"plan", "FILE"}).mentions("forecast none"));
  BOOST_TEST(here.plan_json().at("forecast").is_null());
  BOOST_TEST(!std::filesystem::exists(here.cache()), "a plan that was not asked has measured");
  const auto asked = here.run({"plan", "FILE", "--calibrate"});
  BOOST_TEST(asked.code == 0, asked.all());
  BOOST_TEST(asked.mentions("forecast 1 stream: prompts"), asked.all());
  BOOST_TEST(asked.mentions(" GB of weights a second on "), asked.all());
  BOOST_TEST(here.plan_json().at("weight_bytes_per_s").get<double>() > 1e7);
  BOOST_TEST(asked.mentions("8 streams: prompts"), asked.all());
  const auto rates = here.plan_json().at("forecast");
  BOOST_REQUIRE(rates.size() == 2u);
  BOOST_TEST(rates.at(0).at("answer_tokens_per_s").get<double>() > 0);
  BOOST_TEST(rates.at(1).at("streams") == 8);
  // Figures that were damaged are none.
  for (const auto& entry : std::filesystem::directory_iterator(here.cache() / "troupe"))
    write_text(entry.path(), "{");
  BOOST_TEST(here.plan_json().at("forecast").is_null());
}

BOOST_AUTO_TEST_CASE(generate_says_what_was_to_be_expected) {
  const forecast_cluster here;
  const std::vector<std::string> asked{
    "generate", "FILE", "--prompt", "In the beginning", "--max-tokens", "24", "--ignore-end"};
  BOOST_TEST(!here.run(asked).mentions("(forecast "), "nothing is known yet");
  BOOST_REQUIRE(here.run({"plan", "FILE", "--calibrate"}).code == 0);
  const auto told = here.run(asked);
  BOOST_TEST(told.mentions(" tokens/s, first after "), told.all());
  BOOST_TEST(told.mentions(" ms (forecast "), told.all());
  auto with_json = asked;
  with_json.insert(with_json.end(), {"--json", "--quiet"});
  const auto answer = parsed(here.run(with_json));
  const auto first = answer.at("forecast_first_token_s").get<double>();
  const auto total = answer.at("forecast_total_s").get<double>();
  BOOST_TEST(first > 0);
  BOOST_TEST(total > first);
  // A thousand times is a unit that was mixed up, not a busy machine.
  BOOST_TEST(total > answer.at("total_s").get<double>() / 1000);
  BOOST_TEST(total < answer.at("total_s").get<double>() * 1000);
}

BOOST_AUTO_TEST_CASE(scenarios_are_simulated) {
  const forecast_cluster here;
  const auto text = here.run({"plan", "--simulate", scenarios + "llama_70b.toml"});
  BOOST_TEST(text.code == 0, text.all());
  for (const auto* part : {"70B on 8 servers", "tokens/s over all", "recoveries a week", "best of"})
    BOOST_TEST(text.mentions(part), part << " is not in\n" << text.all());
  const auto whole =
    parsed(here.run({"plan", "--simulate", scenarios + "llama_405b.toml", "--json"}));
  BOOST_TEST(whole.at("ranks").size() == 64u);
  BOOST_TEST(whole.at("stages").size() == 8u);
  BOOST_TEST(whole.at("requests").size() == 128u);
  BOOST_TEST(whole.at("answer_tokens_per_s").get<double>() > 0);
  const auto again =
    parsed(here.run({"plan", "--simulate", scenarios + "llama_405b.toml", "--json"}));
  BOOST_TEST(again == whole, "the same scenario gave other figures");
}

BOOST_AUTO_TEST_CASE(this_host_can_be_in_a_scenario) {
  const forecast_cluster here;
  const auto file = here.cache().parent_path() / "measured.toml";
  write_text(
    file,
    "[model]\nshape = \"110M\"\ncontext = 512\n[[host]]\nmeasured = true\nmemory = \"2GiB\"\n"
    "ranks = 2\nthreads = 1\n[parallel]\npipeline = 2\ntensor = 1\n[load]\nstreams = 2\n"
    "prompt = 16\nanswer = 16\n");
  const auto whole = parsed(here.run({"plan", "--simulate", file.string(), "--json"}));
  BOOST_TEST(whole.at("hosts_used") == 1);
  BOOST_TEST(whole.at("ranks").size() == 2u);
  BOOST_TEST(whole.at("answer_tokens_per_s").get<double>() > 0);
  BOOST_TEST(std::filesystem::exists(here.cache() / "troupe"), "the figures were not kept");
}

BOOST_AUTO_TEST_CASE(scenarios_that_cannot_work_are_pointed_at) {
  const forecast_cluster here;
  const auto file = here.cache().parent_path() / "wrong.toml";
  const std::string host = "[[host]]\ncores = 4\nmemory = \"1GiB\"\nread_gb_per_s = 20\n"
                           "gflop_per_s = 100\n";
  const auto refused = [&](const std::string& text, int code, const std::string& words) {
    write_text(file, text);
    const auto ran = here.run({"plan", "--simulate", file.string()});
    BOOST_TEST(ran.code == code, ran.all());
    BOOST_TEST(ran.mentions(words), ran.all());
  };
  refused("[model]\nshapes = \"8B\"\n" + host, 2, "did you mean \"shape\"?");
  refused("[model]\nshape = \"8B\"\n" + host, 4, "host-0");
  refused("[model]\nshape = \"8B\"\n" + host + "[parallel]\ntensor = 2\n", 2, "more than the 1");
  const auto both = here.run({"plan", "FILE", "--simulate", file.string()});
  BOOST_TEST(both.code == 2, both.all());
  BOOST_TEST(here.run({"plan", "--simulate", "/no/such/scenario.toml"}).code == 3);
}
