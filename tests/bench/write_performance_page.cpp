// write_performance_page REPORT.json docs/performance.md: puts the tables of a report of
// `troupe bench` between the marks of their parts. A part that the report lacks stays as it was.

#include "actors/cli/bench.hpp"
#include "actors/cli/bench/report.hpp"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

using namespace troupe::cli;

namespace {

std::string read_file(const char* file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// False where the page has no such marks.
bool replace_part(std::string& page, const std::string& part, const std::string& text) {
  const auto mark = "<!-- begin " + part + " -->\n";
  const auto begin = page.find(mark);
  const auto end = page.find("<!-- end " + part + " -->", begin);
  if (begin == std::string::npos || end == std::string::npos)
    return false;
  page.replace(begin + mark.size(), end - begin - mark.size(), text);
  return true;
}

std::string host_line(const bench_report& report) {
  const auto& host = report.host;
  auto text = fmt::format("{}, {} cores, {}; UCX {}; troupe {}, {}",
                          host.cpu,
                          host.cores,
                          host.instruction_set,
                          host.ucx,
                          report.version,
                          report.measured.substr(0, 10));
  if (!report.model.empty())
    text += fmt::format("; model {} held as {}", report.model, report.held);
  return text + ".\n";
}

} // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    fmt::print(stderr, "write_performance_page REPORT.json PAGE.md\n");
    return 2;
  }
  const auto report = read_bench_json(arguments[1]);
  if (!report) {
    fmt::print(stderr, "write_performance_page: {}\n", report.error().what);
    return 1;
  }
  auto page = read_file(arguments[2]);
  bool whole = replace_part(page, "host", host_line(*report));
  for (const auto& part : bench_parts())
    if (const auto table = bench_markdown(*report, part); !table.empty())
      whole = replace_part(page, part, table) && whole;
  if (!whole) {
    fmt::print(stderr, "write_performance_page: {} lacks the marks of a part\n", arguments[2]);
    return 1;
  }
  std::ofstream out(arguments[2], std::ios::binary | std::ios::trunc);
  out << page;
  out.close();
  return out ? 0 : 1;
}
