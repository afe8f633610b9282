// The kernels by what they execute, not by what they take: instruction counts do not depend on what
// else the machine does. callgrind counts each kernel of instruction_driver; tests/bench/
// instruction_counts.json holds what it was. More than 3 % above is a kernel that got slower; more
// than 3 % below is a table to be written anew, which is one command:
//
//   build/release/tests/bin/bench_instructions -- update=tests/bench/instruction_counts.json
//
// The table is that of one compiler and build type: with others the test says that it did not run.

#include "tests/paths.hpp"
#include "tests/support/page_part.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <nlohmann/json.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

constexpr double tolerance = 0.03; ///< From the table to now.
const std::string table_name = "tests/bench/instruction_counts.json";

struct kernel_count {
  double operations = 0;
  std::vector<double> instructions; ///< Of each call that was counted.

  /// For a thousand operations: what the table holds.
  double per_thousand() const { return instructions.front() / operations * 1000; }
};

struct counted_run {
  std::string why_not; ///< Empty, or why nothing was counted.
  std::string compiler;
  std::map<std::string, kernel_count> kernels;
};

/// What stands behind a mark at the beginning of a line.
std::string behind(const std::string& text, const std::string& mark) {
  const auto at = text.find("\n" + mark);
  if (at == std::string::npos)
    return {};
  const auto from = at + 1 + mark.size();
  return text.substr(from, text.find('\n', from) - from);
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Adds what one of callgrind's files counted.
void read_counts(const std::filesystem::path& file, counted_run& into) {
  const auto text = read_file(file);
  const auto name = behind(text, "desc: Trigger: Client Request: ");
  const auto total = behind(text, "totals: ");
  if (!name.empty() && !total.empty())
    into.kernels[name].instructions.push_back(std::stod(total));
}

void read_line(const std::string& line, counted_run& into) {
  const auto tab = line.find('\t');
  if (tab == std::string::npos)
    return;
  const auto first = line.substr(0, tab);
  const auto second = line.substr(tab + 1);
  if (first == "compiler")
    into.compiler = second;
  else
    into.kernels[second].operations = std::stod(first);
}

counted_run count_instructions() {
  counted_run made;
#if defined(__SANITIZE_ADDRESS__)
  made.why_not = "valgrind cannot run programs with the address sanitizer";
  return made;
#endif
  const temporary_folder folder;
  const auto driver =
    (std::filesystem::path{TROUPE_BINARY_DIR} / "tests" / "bin" / "instruction_driver").string();
  auto child = test::process::run({"/bin/sh",
                                   "-c",
                                   "command -v valgrind >/dev/null || exit 127; exec valgrind "
                                   "-q --tool=callgrind --instr-atstart=no "
                                   "--callgrind-out-file=\"$1/counts\" \"$2\"",
                                   "sh",
                                   folder.path().string(),
                                   driver});
  child.finish_input();
  for (const auto& line : child.hear_all(50s))
    read_line(line, made);
  const auto ended = child.wait(5s);
  if (ended && ended->exited && ended->code == 127)
    made.why_not = "there is no valgrind here";
  else if (ended && ended->exited && ended->code == 3)
    made.why_not = "this host has no AVX2";
  else
    BOOST_REQUIRE_MESSAGE(ended && ended->exited && ended->code == 0, "the driver runs to its end");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    read_counts(entry.path(), made);
  if (made.why_not.empty() && made.kernels.begin()->second.instructions.empty())
    made.why_not = "the driver was built without valgrind's header";
  return made;
}

void write_table(const counted_run& found, const std::string& file) {
  nlohmann::ordered_json kernels;
  for (const auto& [name, kernel] : found.kernels)
    kernels[name] = std::round(kernel.per_thousand() * 10) / 10;
  const nlohmann::ordered_json table{
    {"what", "instructions for a thousand operations, counted by bench_instructions"},
    {"compiler", found.compiler},
    {"kernels", kernels}};
  std::ofstream out(file);
  out << table.dump(2) << "\n";
  BOOST_REQUIRE_MESSAGE(out.good(), file << " can be written");
}

void compare(const std::string& name, double now, double before) {
  const auto by = now / before - 1;
  BOOST_TEST_MESSAGE(name << ": " << now << " instructions for a thousand operations, " << before
                          << " in the table");
  BOOST_CHECK_MESSAGE(by <= tolerance,
                      name << " takes " << by * 100 << " % more instructions than in " << table_name
                           << ": it got slower");
  BOOST_CHECK_MESSAGE(by >= -tolerance,
                      name << " takes " << -by * 100 << " % fewer instructions than in "
                           << table_name << ": well done; write the table anew with `"
                           << "bench_instructions -- update=" << table_name << "`");
}

} // namespace

BOOST_AUTO_TEST_CASE(kernels_take_no_more_instructions_than_they_did) {
  const auto found = count_instructions();
  if (!found.why_not.empty()) {
    BOOST_TEST_MESSAGE("DID NOT RUN: " << found.why_not);
    return;
  }
  for (const auto& [name, kernel] : found.kernels) {
    BOOST_REQUIRE_MESSAGE(kernel.instructions.size() == 2u, name << " was counted twice");
    // What the guard rests on: a count is the kernel's, not the moment's. An allocation may take
    // some hundred instructions more or fewer.
    const auto [least, most] = std::minmax(kernel.instructions.front(), kernel.instructions.back());
    BOOST_CHECK_MESSAGE(most <= least * 1.001, name << ": " << least << " and " << most);
  }
  if (const auto file = test_option("update")) {
    write_table(found, *file);
    return;
  }
  const auto table =
    nlohmann::json::parse(read_file(std::filesystem::path{TROUPE_SOURCE_DIR} / table_name));
  if (table.at("compiler") != found.compiler) {
    BOOST_TEST_MESSAGE("DID NOT RUN: the table is that of compiler "
                       << table.at("compiler") << ", this is " << found.compiler);
    return;
  }
  const auto& kernels = table.at("kernels");
  for (const auto& [name, kernel] : found.kernels) {
    BOOST_CHECK_MESSAGE(kernels.contains(name), name << " is not in " << table_name);
    if (kernels.contains(name))
      compare(name, kernel.per_thousand(), kernels.at(name).get<double>());
  }
  BOOST_TEST(kernels.size() == found.kernels.size(), "the table names no kernel that is gone");
}
