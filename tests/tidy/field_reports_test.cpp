// docs/field-reports.md against the tests: rows without a test, and names that are not there any
// more.

#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path root = TROUPE_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(in, "cannot read " << file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct row {
  std::string what;
  std::string where;
  std::map<std::string, std::set<std::string>> cases; ///< By file.
};

/// What stands between backticks: a file, or a case of the file before it.
void read_cases(row& into) {
  static const std::regex quoted("`([^`]+)`");
  std::string file;
  for (std::sregex_iterator at(into.where.begin(), into.where.end(), quoted), end; at != end; ++at)
    if (const auto word = (*at)[1].str(); word.ends_with(".cpp"))
      file = word;
    else
      into.cases[file].insert(word);
}

std::map<std::string, row> read_table() {
  static const std::regex line_of_table(R"(\| ([A-Z]\d\d) \| ([^|]+) \| (.*) \|)");
  std::map<std::string, row> found;
  std::istringstream page(text_of(root / "docs" / "field-reports.md"));
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (!std::regex_match(line, parts, line_of_table))
      continue;
    BOOST_TEST(!found.contains(parts[1]), parts[1] << " has two rows");
    auto& one = found[parts[1]];
    one.what = parts[2];
    one.where = parts[3];
    read_cases(one);
  }
  return found;
}

/// Every case of every suite, by file.
std::map<std::string, std::set<std::string>> read_suites() {
  static const std::regex begin(
    R"(BOOST_(?:AUTO|DATA|FIXTURE|PARAM)_TEST_CASE(?:_TEMPLATE)?\(\s*(\w+))");
  std::map<std::string, std::set<std::string>> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests")) {
    if (!entry.is_regular_file() || !entry.path().string().ends_with("_test.cpp"))
      continue;
    const auto text = text_of(entry.path());
    auto& cases = found[entry.path().lexically_relative(root / "tests").generic_string()];
    for (std::sregex_iterator at(text.begin(), text.end(), begin), end; at != end; ++at)
      cases.insert((*at)[1]);
  }
  return found;
}

const std::vector<std::string> expected{
  "A01", "A03", "A05", "A07", "A09", "A11", "A13", "A15", "A17", "A19", "A21", "A23", "A25",
  "A27", "B01", "B03", "B05", "B07", "B09", "B11", "B13", "B15", "B17", "B19", "B21", "B23",
  "B25", "B27", "B29", "C01", "C03", "C05", "C06", "C07", "C09", "E01", "E03", "E05", "E07",
  "E09", "E11", "E13", "E15", "E17", "E19", "E21", "E23", "E24", "E25", "E27", "E29", "E31",
  "E33", "E34", "E35", "E37", "E39", "E41", "E43", "E44", "E47", "E49", "E51", "F01", "F03",
  "F05", "F07", "F09", "F11", "F08", "G01", "G03", "G04", "G05", "G06", "G07", "G09", "G11"};

} // namespace

BOOST_AUTO_TEST_CASE(every_row_has_a_test_of_its_name_or_says_what_it_waits_for) {
  const auto table = read_table();
  for (const auto& id : expected) {
    BOOST_REQUIRE_MESSAGE(table.contains(id), "no row " << id);
    const auto& one = table.at(id);
    bool has_its_own = false;
    for (const auto& [file, cases] : one.cases)
      for (const auto& name : cases)
        has_its_own = has_its_own || name.starts_with(id + "_");
    BOOST_TEST((has_its_own || one.where.find("Waiting: ") != std::string::npos), id);
  }
}

BOOST_AUTO_TEST_CASE(what_the_page_names_is_there) {
  const auto suites = read_suites();
  std::size_t named = 0;
  for (const auto& [id, one] : read_table())
    for (const auto& [file, cases] : one.cases) {
      named += cases.size();
      BOOST_TEST(suites.contains(file), id << " names " << file);
      for (const auto& name : cases)
        BOOST_TEST((suites.contains(file) && suites.at(file).contains(name)),
                   id << " names " << name << " of " << file);
    }
  BOOST_TEST(named > 100u);
}
