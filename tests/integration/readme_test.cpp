// README.md, typed as it stands: every command in its blocks does what the page says.

#include "tests/paths.hpp"
#include "tests/support/cluster.hpp"
#include "tests/support/page_run.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <regex>
#include <set>

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::filesystem::path checkout{TROUPE_SOURCE_DIR};

/// What the page calls /models/Llama-3.2-1B: its own model.
served_model readers_model() {
  return served_model{{.layers = 4, .context = 8192}};
}

/// The packages between two marks, apart from the words that are none.
std::set<std::string>
words_between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  BOOST_REQUIRE_MESSAGE(from != std::string::npos, "no " << begin);
  const auto to = text.find(end, from + begin.size());
  const auto part = text.substr(from + begin.size(), to - from - begin.size());
  const std::regex word{"\\S+"};
  return {std::sregex_token_iterator{part.begin(), part.end(), word}, {}};
}

} // namespace

BOOST_AUTO_TEST_CASE(the_readme_can_be_typed_as_it_stands) {
  const auto model = readers_model();
  const std::string two_stages = "config/examples/two_stages.toml";
  using way = page_rule::way;
  page_run reader{
    "README.md",
    {{"./quickstart", way::skip, "installs packages and builds: a machine of its own is for that"},
     {"cmake --preset release", way::skip, "builds, which is what made this test"},
     {"ctest --preset release", way::skip, "runs all tests, this one among them"},
     {"build/release/troupe serve",
      way::skip,
      "its port may be taken here; the serve suites do it"},
     {"curl ", way::skip, "asks that port"},
     {"build/release/troupe up " + two_stages, way::stay, "", "serving;"},
     {"build/release/troupe status " + two_stages + " --watch", way::watch},
     {"troupe join ", way::skip, "needs another host; integration_cluster_hosts has one"},
     {"troupe node cluster.toml --name n3", way::stay}},
    {{"/models/Llama-3.2-1B", model.folder().string()}}};
  reader.before("When nodes come, go and fail", [&] {
    std::string file = "[model]\npath = \"" + model.folder().string() + "\"\n[cluster]\nhead = "
                       + "\"n0\"\n[parallel]\npipeline = 4\nleast_stages = 1\n";
    for (const std::string name : {"n0", "n1", "n2", "n3"})
      file += "[[node]]\nname = \"" + name + "\"\nthreads = 1\n";
    write_text(reader.folder() / "cluster.toml", file);
    reader.open_terminal("troupe node cluster.toml --name n0", "serves with 4 ranks");
    for (const std::string name : {"n1", "n2"})
      reader.open_terminal("troupe node cluster.toml --name " + name, {});
  });
  reader.read();
  const auto [code, lines] = reader.type("~/.local/bin/troupe plan");
  BOOST_TEST(code == 0);
  const auto home = "model   " + (reader.folder() / ".local/share/troupe/demo").string();
  BOOST_TEST(lines.at(1) == home, "the installed program has its own demo model");
}

BOOST_AUTO_TEST_CASE(parts_of_cluster_files_in_the_readme_are_right) {
  const auto model = readers_model();
  std::size_t parts = 0;
  for (const auto& block : read_blocks(checkout / "README.md")) {
    std::string text;
    for (const auto& line : block.lines)
      text += line + "\n";
    if (block.language != "toml" || text.find("[model]") != std::string::npos)
      continue;
    if (text.find("[[node]]") == std::string::npos)
      text += "[parallel]\npipeline = 2\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n";
    const cluster made{"[model]\npath = \"" + model.folder().string() + "\"\n" + text};
    const auto ran = made.run({"plan", "FILE"});
    BOOST_TEST(ran.code == 0, ran.all());
    ++parts;
  }
  BOOST_TEST(parts > 0u);
}

BOOST_AUTO_TEST_CASE(the_readme_lists_the_packages_that_quickstart_installs) {
  const auto script = read_text(checkout / "quickstart");
  auto installed = words_between(script, "\npackages=(", ")");
  installed.merge(words_between(script, "\ntest_packages=(", ")"));
  const auto listed = words_between(
    read_text(checkout / "README.md"), "the last line is for the tests alone:\n\n```\n", "```");
  BOOST_TEST(installed == listed, boost::test_tools::per_element());
  BOOST_TEST(installed.size() > 15u);
}

BOOST_AUTO_TEST_CASE(the_readme_has_the_exit_codes_of_the_help) {
  const auto page = read_text(checkout / "README.md");
  const cluster any{std::string{}};
  auto help = any.run({"--help"}).all();
  help = std::regex_replace(help.substr(help.find("Exit codes: ") + 12), std::regex{"\\s+"}, " ");
  const std::regex entry{R"((\d+) ([^;.]+)[;.])"};
  std::size_t codes = 0;
  for (std::sregex_iterator at{help.begin(), help.end(), entry}, end; at != end; ++at, ++codes) {
    const auto row = "\n| " + (*at)[1].str() + " | ";
    const auto found = page.find(row);
    BOOST_REQUIRE_MESSAGE(found != std::string::npos, "no row for exit code " << (*at)[1]);
    auto meaning = page.substr(found + row.size(), page.find(" |", found + row.size()) - found);
    meaning.erase(std::remove(meaning.begin(), meaning.end(), '`'), meaning.end());
    BOOST_TEST(meaning.starts_with((*at)[2].str()), meaning << " is not " << (*at)[2]);
  }
  BOOST_TEST(codes == 8u);
}

// What the cases above stand on.
BOOST_AUTO_TEST_CASE(shapes_leave_numbers_free_and_nothing_else) {
  const auto same = [](const std::vector<std::string>& shown, const std::vector<std::string>& is) {
    return difference_of_shape(shown, is).empty();
  };
  BOOST_TEST(same({"rank 0  25.2 MB"}, {"rank 17 900 kB"}));
  BOOST_TEST(same({"first after 26 ms; sysv/memory"}, {"first after 1.2 s; tcp/eth0"}));
  BOOST_TEST(!same({"rank 0  25.2 MB"}, {"rank 0  layers"}));
  BOOST_TEST(!same({"rank 0"}, {"rank 0", "rank 1"}));
  BOOST_TEST(!same({"rank 0", "rank 1"}, {"rank 0"}));
  BOOST_TEST(same({"...", "rank 1", "..."}, {"node", "rank 0", "state"}));
  BOOST_TEST(!same({"...", "rank 1"}, {"rank 0", "state"}));
  BOOST_TEST(same({"gathering (waiting ..."}, {"gathering (waiting for n1)"}));
  BOOST_TEST(!same({"gathering (waiting ..."}, {"serving"}));
}

BOOST_AUTO_TEST_CASE(commands_of_a_block_are_found_with_their_output) {
  page_block block{
    10, "Use", "sh", {"one --flag  # why", "", "for a in 1 2; do", "  two $a", "done"}};
  auto found = commands_of(block);
  BOOST_REQUIRE(found.size() == 2u);
  BOOST_TEST(found[0].text == "one --flag");
  BOOST_TEST(found[1].text == "for a in 1 2; do\n  two $a\ndone");
  BOOST_TEST(found[1].line == 13u);
  block = {10, "Use", "", {"log line", "$ one", "first", "", "$ two", "second"}};
  found = commands_of(block);
  BOOST_REQUIRE(found.size() == 2u);
  BOOST_TEST(found[0].output == std::vector<std::string>{"first"},
             boost::test_tools::per_element());
  BOOST_TEST(found[1].output.front() == "second");
}
