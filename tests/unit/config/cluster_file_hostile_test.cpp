// Files that nobody meant as a cluster file, and cluster files with damage: a clear refusal or a
// valid reading, in under a second, never a crash.

#include "config/cluster_file.hpp"
#include "config/toml_screen.hpp"
#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

using namespace troupe;

namespace fs = std::filesystem;

namespace {

// Reads, and fails the test when that takes a second or leaves no message.
result<cluster_settings> read_in_time(std::string_view text) {
  const auto begin = std::chrono::steady_clock::now();
  auto settings = parse_cluster_text(text, "c.toml");
  const auto took = std::chrono::steady_clock::now() - begin;
  BOOST_TEST(std::chrono::duration<double>(took).count() < 1.0);
  if (!settings)
    BOOST_TEST(!settings.error().what.empty());
  return settings;
}

std::string refusal(std::string_view text) {
  auto settings = read_in_time(text);
  BOOST_REQUIRE(!settings);
  BOOST_TEST((settings.error().code == errc::invalid_config));
  return settings.error().what;
}

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  while (text.size() + piece.size() <= bytes)
    text += piece;
  return text;
}

#define MUST_SAY(text, part)                                                                       \
  do {                                                                                             \
    const std::string said = text;                                                                 \
    BOOST_TEST((said.find(part) != std::string::npos),                                             \
               "\"" << (part) << "\" is missing in:\n"                                             \
                    << said.substr(0, 300));                                                       \
  } while (false)

std::string example(const std::string& name) {
  std::ifstream stream{fs::path{TROUPE_SOURCE_DIR} / "config/examples" / name, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

} // namespace

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_named) {
  const auto missing = read_cluster_file("/nonexistent/cluster.toml");
  BOOST_REQUIRE(!missing);
  BOOST_TEST((missing.error().code == errc::not_found));
  MUST_SAY(missing.error().what, "/nonexistent/cluster.toml");
  const auto folder = read_cluster_file(fs::temp_directory_path());
  BOOST_REQUIRE(!folder);
  MUST_SAY(folder.error().what, "this is a folder");
  const auto endless = read_cluster_file("/dev/zero");
  BOOST_REQUIRE(!endless);
  MUST_SAY(endless.error().what, "larger than 262144 bytes");
  const auto nothing = read_cluster_file("/dev/null");
  BOOST_REQUIRE(!nothing);
  MUST_SAY(nothing.error().what, "the file is empty");
  BOOST_TEST(!read_cluster_file(""));
  BOOST_TEST(!read_cluster_file(std::string(100'000, 'x')));
}

BOOST_AUTO_TEST_CASE(what_is_no_text_is_refused) {
  MUST_SAY(refusal(std::string("a\0b", 3)), "c.toml:1:2: control character 0x00");
  MUST_SAY(refusal("\x7F"
                   "ELF"),
           "control character 0x7f");
  MUST_SAY(refusal("x = 1\ny = \"\xFF\xFE\""), "c.toml:2:6: byte 0xff is not UTF-8");
  for (const auto* bytes : {"\x80",
                            "\xC0\x80",
                            "\xC3",
                            "\xE0\x80\x80",
                            "\xED\xA0\x80",
                            "\xF0\x80\x80\x80",
                            "\xF4\x90\x80\x80",
                            "\xF5\x80\x80\x80",
                            "\xE2\x82",
                            "\xC3("})
    MUST_SAY(refusal(std::string{"x = \""} + bytes + "\""), "is not UTF-8");
  MUST_SAY(refusal("x = \"\x1B[31m\""), "control character 0x1b");
  BOOST_TEST(screen_toml("x = \"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8E\xAD\"", "c.toml").has_value());
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_refused_before_it_is_parsed) {
  MUST_SAY(refusal(std::string(10'000'000, '#')), "larger than");
  MUST_SAY(refusal("x = " + repeated("[", 100'000)), "nested deeper than 16");
  MUST_SAY(refusal("x = " + repeated("[", 4000)), "nested deeper than 16");
  MUST_SAY(refusal("x = " + repeated("[\n", 200'000)), "nested deeper than 16");
  MUST_SAY(refusal("x = " + repeated("{a=", 4000)), "nested deeper than 16");
  MUST_SAY(refusal(repeated("a.", 4000) + "a = 1"), "more than 16 parts");
  MUST_SAY(refusal("[" + repeated("a . ", 4000) + "a]"), "more than 16 parts");
  MUST_SAY(refusal("x = [\n" + repeated("1,\n", 100'000) + "]"), "more than 16384 values");
  MUST_SAY(refusal(repeated("[[node]]\n", 200'000)), "more than 16384 values");
  MUST_SAY(refusal("x = \"" + std::string(5000, 'a') + "\""), "longer than 4096 bytes");
}

// Deep structures that hide from the scan in strings and comments are not deep; those that look
// like strings but are none must not hide anything.
BOOST_AUTO_TEST_CASE(the_scan_for_depth_knows_strings_and_comments) {
  const auto many = repeated("[", 100) + repeated(".", 100);
  for (const auto& text : {"x = \"" + many + "\"",
                           "x = '" + many + "'",
                           "# " + many,
                           "x = \"\"\"\n" + many + "\"\"\"",
                           "x = '''\n" + many + "'''",
                           "x = \"\\\"" + many + "\"",
                           "x = '\\'\n# " + many})
    BOOST_TEST(screen_toml(text, "c.toml").has_value(), text);
  for (const auto& text : {"x = \"\" " + many,
                           "x = '\\' " + many,
                           "x = \"\\\\\" " + many,
                           "x = \"\"\"a\"\"\" " + many,
                           "x = '\n" + many,
                           "x = \"a\\\n" + many})
    BOOST_TEST(!screen_toml(text, "c.toml"), text);
}

BOOST_AUTO_TEST_CASE(the_largest_files_that_are_parsed_take_less_than_a_second) {
  const toml_bounds bounds;
  const auto filler = repeated("#" + std::string(98, ' ') + "\n", bounds.text_bytes / 2);
  refusal(repeated("\n", bounds.text_bytes - 10) + "x = 1");
  refusal(filler + "x = [\n" + repeated("1,\n", 3 * 16'000) + "]");
  refusal(filler + "x = [\n" + repeated(repeated("1,", 4000) + "\n", 2 * 16'000) + "]");
  const auto deep = repeated("[", 14) + repeated("]", 14) + ",\n";
  refusal(filler + "x = [\n" + repeated(deep, 1000 * deep.size()) + "]");
  std::string tables, keys, nodes;
  for (int i = 0; i < 16'000; ++i)
    tables += fmt::format("[t{}]\n", i);
  for (int i = 0; keys.size() < bounds.text_bytes - 20; ++i)
    keys += fmt::format("k{} = 1\n", i);
  for (int i = 0; i < 3'000; ++i)
    nodes += fmt::format("[[node]]\nname = \"n{}\"\nport = 7000\n", i);
  refusal(tables);
  refusal(keys);
  refusal(repeated("[[node]]\n", 9 * 8'000));
  refusal("[model]\npath = \"demo\"\n" + nodes);
}

// Every example, damaged in every way that a text editor, a bad copy or a bad mind knows.
BOOST_AUTO_TEST_CASE(a_damaged_file_never_crashes_the_reader) {
  constexpr std::uint32_t seed = 20240611;
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random{seed};
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>{0, bound - 1}(random);
  };
  const std::string_view pieces[] = {
    "[",   "]",  "[[",   "]]",         "{",        "}",    "\"",  "\"\"\"", "'",   "'''",
    "=",   ".",  ",",    "#",          "\n",       "\\",   "\\u", "-",      "1e9", "0x",
    "nan", "\t", "true", "1979-05-27", "\xC3\xA9", "\xFF", "\r",  "node",   "name"};
  const std::vector<std::string> originals{
    example("demo.toml"), example("home_lab.toml"), example("slurm.toml")};
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto text = originals[below(originals.size())];
    for (auto changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
      const auto at = below(text.size());
      const auto size = below(30);
      switch (below(6)) {
      case 0: text[at] = static_cast<char>(below(256)); break;
      case 1: text.erase(at, size); break;
      case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
      case 3: text.resize(at); break;
      case 4: text.insert(at, text.substr(below(text.size()), size)); break;
      case 5: std::swap(text[at], text[below(text.size())]); break;
      }
    }
    (read_in_time(text) ? accepted : refused) += 1;
  }
  // Damage to comments is no damage; everything else is seen.
  BOOST_TEST(accepted > 100u);
  BOOST_TEST(refused > 1000u);
}
