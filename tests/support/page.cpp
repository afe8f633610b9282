#include "tests/support/page.hpp"

#include "tests/support/process.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <regex>

namespace troupe::tests {

namespace {

using namespace std::chrono_literals;

const std::string fence = "```";

bool is_whole_command(const std::string& text) {
  auto shell = test::process::run({"/bin/bash", "-n", "-c", text}, {}, true);
  shell.finish_input();
  shell.hear_all(5s);
  const auto ended = shell.wait(5s);
  return ended && ended->exited && ended->code == 0;
}

/// Two blanks before a mark set a comment for the reader apart.
std::string without_comment(const std::string& line) {
  const auto mark = line.find("  # ");
  const auto text = line.substr(0, mark);
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::vector<page_command> lines_as_commands(const page_block& block) {
  std::vector<page_command> found;
  std::string text;
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    const auto& line = block.lines[i];
    if (text.empty()) {
      if (line.empty())
        continue;
      found.push_back({block.line + 1 + i, block.section, {}, {}});
    }
    text += (text.empty() ? "" : "\n") + line;
    const bool script = text.starts_with("#!"); // the whole block
    if (script ? i + 1 < block.lines.size() : !is_whole_command(text))
      continue;
    found.back().text =
      script || text.find('\n') != std::string::npos ? text : without_comment(text);
    text.clear();
  }
  BOOST_REQUIRE_MESSAGE(text.empty(), "line " << block.line << ": no end of the command " << text);
  return found;
}

std::vector<page_command> marked_commands(const page_block& block) {
  std::vector<page_command> found;
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    const auto& line = block.lines[i];
    if (line.starts_with("$ "))
      found.push_back({block.line + 1 + i, block.section, without_comment(line.substr(2)), {}});
    else if (!found.empty())
      found.back().output.push_back(line);
  }
  for (auto& command : found)
    while (!command.output.empty() && command.output.back().empty())
      command.output.pop_back();
  return found;
}

} // namespace

std::vector<page_block> read_blocks(const std::filesystem::path& page) {
  std::ifstream in{page};
  BOOST_REQUIRE_MESSAGE(in, page << " cannot be read");
  std::vector<page_block> found;
  std::string section;
  bool inside = false;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with(fence)) {
      if (!inside)
        found.push_back({number, section, line.substr(fence.size()), {}});
      inside = !inside;
    } else if (inside) {
      found.back().lines.push_back(line);
    } else if (line.starts_with("#")) {
      section = line.substr(line.find_first_not_of("# "));
    }
  }
  BOOST_REQUIRE_MESSAGE(!inside, page << " has a block without an end");
  return found;
}

std::vector<page_command> commands_of(const page_block& block) {
  if (block.language == "sh")
    return lines_as_commands(block);
  return block.language.empty() ? marked_commands(block) : std::vector<page_command>{};
}

std::string shape_of_line(const std::string& line) {
  static const std::vector<std::pair<std::regex, std::string>> rules{
    {std::regex{R"(\b[0-9a-f]{32}\b)"}, "#"},
    {std::regex{R"(\b(sysv|posix|cma|tcp|self|rc|dc|ud)\w*/[\w:.]+)"}, "wire"},
    {std::regex{R"([\w.:]+ \((sysv|posix|cma|tcp|self|rc|dc|ud)[\w ]*\))"}, "device"},
    {std::regex{R"(device(, device)*)"}, "devices"},
    {std::regex{R"(\d+([.:]\d+)*)"}, "#"},
    {std::regex{R"(# (B|kB|MB|GB|TB)\b)"}, "# bytes"},
    {std::regex{R"(# m?s\b)"}, "# s"},
    {std::regex{R"( +)"}, " "},
    {std::regex{R"( $)"}, ""},
  };
  auto shape = line;
  for (const auto& [what, instead] : rules)
    shape = std::regex_replace(shape, what, instead);
  return shape;
}

std::string difference_of_shape(const std::vector<std::string>& shown,
                                const std::vector<std::string>& found) {
  std::size_t at = 0;
  bool any_lines = false;
  for (const auto& line : shown) {
    if (line == "...") {
      any_lines = true;
      continue;
    }
    const bool open = line.ends_with(" ...");
    const auto wanted = shape_of_line(open ? line.substr(0, line.size() - 4) : line);
    const auto matches = [&](const std::string& seen) {
      const auto shape = shape_of_line(seen);
      return open ? shape.starts_with(wanted) : shape == wanted;
    };
    while (any_lines && at < found.size() && !matches(found[at]))
      ++at;
    if (at == found.size())
      return "nothing looks like \"" + line + "\"";
    if (!matches(found[at]))
      return "\"" + found[at] + "\" does not look like \"" + line + "\"";
    ++at;
    any_lines = false;
  }
  return any_lines || at == found.size() ? "" : "the page does not show \"" + found[at] + "\"";
}

} // namespace troupe::tests
