// Scenarios are read as strictly as cluster files.

#include "config/scenario.hpp"
#include "config/settings_reference.hpp"
#include "tests/paths.hpp"
#include "tests/support/page_part.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <iterator>

using namespace troupe;

namespace {

const std::filesystem::path source_folder = TROUPE_SOURCE_DIR;

const std::string good_host = "[[host]]\ncores = 4\nmemory = \"8GiB\"\nread_gb_per_s = 20\n"
                              "gflop_per_s = 100\n";
const std::string good_model = "[model]\nshape = \"8B\"\n";

std::string refusal_of(const std::string& text) {
  const auto made = parse_scenario(text, "s.toml");
  BOOST_REQUIRE_MESSAGE(!made, "a wrong scenario was read");
  BOOST_CHECK(made.error().code == errc::invalid_config);
  return made.error().what;
}

void must_say(const std::string& text, std::initializer_list<const char*> parts) {
  const auto what = refusal_of(text);
  for (const auto* part : parts)
    BOOST_TEST(what.find(part) != std::string::npos, "\"" << part << "\" is not in\n" << what);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_scenario_has_defaults) {
  const auto made = parse_scenario(good_model + good_host, "s.toml");
  BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().what));
  BOOST_TEST(made->model.shape == "8B");
  BOOST_TEST(!made->model.held_dtype);
  BOOST_TEST(made->hosts.size() == 1u);
  BOOST_TEST(made->hosts.front().memory_bytes == std::uint64_t{8} << 30);
  BOOST_TEST(made->parallel.pipeline == 0u);
  BOOST_TEST(made->load.streams == 8u);
  BOOST_TEST(made->host_count() == 1u);
}

BOOST_AUTO_TEST_CASE(the_examples_are_right) {
  std::size_t examples = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder / "config/scenarios")) {
    const auto made = read_scenario(entry.path());
    BOOST_TEST(made.has_value(), (made ? "" : made.error().what));
    ++examples;
  }
  BOOST_TEST(examples >= 2u);
}

BOOST_AUTO_TEST_CASE(mistakes_are_shown_where_they_are) {
  must_say("[model]\nshap = \"8B\"\n" + good_host,
           {"s.toml:2:", "did you mean \"shape\"?", "shap = ", "^^^^"});
  must_say(good_model + good_host + "[lods]\nstreams = 1\n", {"there is no [lods] in a scenario"});
  must_say(good_model + good_host + "[load]\nstreams = 0\n",
           {"load.streams", "from 1 to 4096", "^"});
  must_say(good_model + good_host + "[load]\nprompt = 5000\n",
           {"context of 4096", "prompt = 5000"});
  must_say("[model]\nshape = \"9B\"\n" + good_host, {"model.shape", "\"8B\"", "^"});
  must_say("[model]\nshape = \"8B\"\nlayers = 3\n" + good_host, {"more than one of path, shape"});
  must_say("[model]\n" + good_host, {"needs a path, a shape, or sizes"});
  must_say("[model]\nlayers = 3\nheads = 6\nkv_heads = 4\n" + good_host,
           {"\"hidden\"", "\"ffn\"", "\"vocabulary\"", "6 heads are not a multiple of 4"});
  must_say(good_model, {"there is no [[host]]", "[[host]]\ncount = 8"});
  must_say(good_model + "host = 3\n", {"host"});
  must_say(good_model + "[[host]]\nmemory = \"1GiB\"\n",
           {"needs \"cores\", or measured = true", "read_gb_per_s", "gflop_per_s"});
  must_say(good_model + "[[host]]\nmeasured = true\n", {"needs \"memory\""});
  must_say(good_model + good_host + "read_reached = 1.5\n", {"read_reached", "above 0 to 1"});
  must_say(good_model + good_host + "count = 65000\n" + good_host + "count = 65000\n",
           {"130000 hosts are more than"});
  must_say("[model\n", {"s.toml:1"});
  must_say("", {"there is no [[host]]"});
}

BOOST_AUTO_TEST_CASE(files_that_are_none_are_told_apart) {
  BOOST_CHECK(read_scenario("/nowhere.toml").error().code == errc::not_found);
  const auto folder = read_scenario("/tmp");
  BOOST_REQUIRE(!folder);
  BOOST_TEST(folder.error().what.find("not a scenario") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_page_lists_every_key) {
  scenario example;
  example.hosts.resize(1);
  std::string keys;
  for (const auto& section : sections_of(example))
    keys += section_reference(section);
  if (const auto page = tests::test_option("page"))
    tests::write_page_part(*page, "keys", keys);
  std::ifstream in(source_folder / "docs/simulation.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  BOOST_TEST(page.find(keys) != std::string::npos,
             "docs/simulation.md has other keys; unit_scenario -- page=docs/simulation.md writes "
             "them");
}
