#include "tests/support/page_run.hpp"

#include "tests/paths.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

namespace troupe::tests {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto patience = 60s;

/// Others are parts that go into such a file.
bool is_whole_file(const page_block& block) {
  return std::find(block.lines.begin(), block.lines.end(), "[model]") != block.lines.end();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  return text;
}

} // namespace

page_run::page_run(std::string page, std::vector<page_rule> rules, page_changes changes)
  : page_(std::move(page)), rules_(std::move(rules)), changes_(std::move(changes)) {
  const fs::path checkout{TROUPE_SOURCE_DIR};
  fs::create_directories(folder() / "build");
  fs::create_directories(folder() / "bin");
  fs::create_symlink(TROUPE_BINARY_DIR, folder() / "build" / "release");
  fs::create_symlink(checkout / "config", folder() / "config");
  fs::create_symlink(fs::path{TROUPE_BINARY_DIR} / "troupe", folder() / "bin" / "troupe");
}

void page_run::before(const std::string& section, std::function<void()> action) {
  before_[section] = std::move(action);
}

std::string page_run::changed(std::string text) const {
  for (const auto& [from, to] : changes_)
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  return text;
}

std::string page_run::place(const page_command& command) const {
  return page_ + ":" + std::to_string(command.line) + ": `" + command.text + "`: ";
}

test::process page_run::start(const std::string& command) const {
  const auto path = ::getenv("PATH");
  auto shell = test::process::run(
    {"/bin/bash", "-c", "cd '" + folder().string() + "' && " + changed(command)},
    {"HOME=" + folder().string(),
     "XDG_RUNTIME_DIR=" + folder().string(),
     "PATH=" + (folder() / "bin").string() + ":" + (path == nullptr ? "/usr/bin:/bin" : path)},
    true);
  shell.finish_input();
  return shell;
}

std::pair<int, std::vector<std::string>> page_run::type(const std::string& command) const {
  auto shell = start(command);
  auto lines = shell.hear_all(patience);
  const auto ended = shell.wait(5s);
  return {ended && ended->exited ? ended->code : -1, std::move(lines)};
}

void page_run::open_terminal(const std::string& command, const std::string& until) {
  terminals_.push_back({command, until, start("exec " + command)});
}

void page_run::kill_terminal(const std::string& words) {
  const auto found = std::find_if(terminals_.begin(), terminals_.end(), [&](const opened& one) {
    return one.command.find(words) != std::string::npos;
  });
  BOOST_REQUIRE_MESSAGE(found != terminals_.end(), "nothing stays that mentions " << words);
  terminals_.erase(found); // which kills it
}

void page_run::wait_for_terminals() {
  for (auto& one : terminals_) {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::string heard;
    while (!one.until.empty() && heard.find(one.until) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
      const auto line = one.shell.hear(std::max(left, 1ms));
      BOOST_REQUIRE_MESSAGE(line,
                            "`" << one.command << "` never said " << one.until << ":\n"
                                << heard);
      heard += *line + "\n";
    }
    one.until.clear();
  }
}

void page_run::close_terminals() {
  for (auto& one : terminals_)
    one.shell.signal(SIGINT);
  for (auto& one : terminals_) {
    const auto ended = one.shell.wait(20s);
    BOOST_TEST((ended && ended->exited && ended->code == 0),
               "`" << one.command << "` did not end with 0 after Ctrl-C");
  }
  terminals_.clear();
}

void page_run::write_file(const page_block& block) const {
  std::ofstream out{folder() / "cluster.toml"};
  out << changed(joined(block.lines));
  BOOST_REQUIRE(out.good());
}

void page_run::repeat(const page_command& command) const {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until) {
    const auto [code, found] = type(command.text);
    if (code == 0 && difference_of_shape(command.output, found).empty())
      return;
    std::this_thread::sleep_for(50ms);
  }
  check(command, true); // says why not
}

void page_run::check(const page_command& command, bool compare) const {
  const auto [code, found] = type(command.text);
  const bool fails = std::any_of(command.output.begin(), command.output.end(), [](const auto& l) {
    return l.starts_with("troupe: error: ");
  });
  BOOST_TEST((fails ? code > 0 : code == 0),
             place(command) << "exit code " << code << "\n"
                            << joined(found));
  if (!compare || command.output.empty())
    return;
  const auto difference = difference_of_shape(command.output, found);
  BOOST_TEST(difference.empty(), place(command) << difference << "\n" << joined(found));
}

void page_run::watch(const page_command& command) const {
  auto shell = start("exec " + command.text);
  BOOST_TEST(shell.hear(patience).has_value(), place(command) << "it says nothing");
  shell.signal(SIGINT);
  const auto ended = shell.wait(10s);
  BOOST_TEST((ended && ended->exited && (ended->code == 0 || ended->code == 130)),
             place(command) << "it does not end after Ctrl-C");
}

void page_run::obey(const page_command& command) {
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const page_rule& one) {
    return command.text.starts_with(one.begins);
  });
  if (rule != rules_.end())
    ++used_[rule->begins];
  const auto how = rule == rules_.end() ? std::optional<page_rule::way>{} : rule->how;
  if (how == page_rule::way::skip) {
    BOOST_TEST_MESSAGE(place(command) << "not run: " << rule->why);
    return;
  }
  if (how == page_rule::way::stay) {
    open_terminal(command.text, rule->until);
    for (const auto& more : rule->also)
      open_terminal(more, {});
    return;
  }
  wait_for_terminals();
  if (how == page_rule::way::watch)
    watch(command);
  else if (how == page_rule::way::repeat)
    repeat(command);
  else
    check(command, how != page_rule::way::hide);
}

void page_run::read() {
  for (const auto& block : read_blocks(fs::path{TROUPE_SOURCE_DIR} / page_)) {
    if (block.language == "toml" && is_whole_file(block))
      write_file(block);
    for (const auto& command : commands_of(block)) {
      if (const auto action = before_.find(command.section); action != before_.end()) {
        action->second();
        before_.erase(action);
      }
      obey(command);
    }
  }
  close_terminals();
  for (const auto& rule : rules_) {
    BOOST_TEST(used_[rule.begins] > 0u, page_ << " has no command that begins " << rule.begins);
    const bool lesser = rule.how == page_rule::way::skip || rule.how == page_rule::way::hide;
    BOOST_TEST((!lesser || !rule.why.empty()), rule.begins << " needs a reason");
  }
  for (const auto& [section, action] : before_)
    BOOST_TEST(false, page_ << " has no commands under " << section);
}

} // namespace troupe::tests
