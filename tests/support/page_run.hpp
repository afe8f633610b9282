#pragma once
// A reader who types what a page says, in a folder of its own that looks like a checkout with a
// finished build.

#include "tests/support/page.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::tests {

/// How the reader treats the commands that begin so, where it is not: type it, wait for its end,
/// expect exit code 0 (another where the page shows an error) and what the page shows.
struct page_rule {
  enum class way {
    skip,   ///< Not run at all; `why` says why not.
    stay,   ///< Runs in a terminal of its own until it is interrupted, and then ends with 0.
    watch,  ///< Interrupted at its first output, by Ctrl-C.
    repeat, ///< Typed again and again until it shows what the page shows: that takes a moment.
    hide,   ///< Its output is not compared; `why` says why not.
  };

  std::string begins;
  way how = way::skip;
  std::string why = {};
  std::string until = {};             ///< stay: printed before the reader goes on.
  std::vector<std::string> also = {}; ///< stay: the same in more terminals.
};

/// What the reader types in place of what the page says, as the page tells him to.
using page_changes = std::vector<std::pair<std::string, std::string>>;

class page_run {
public:
  /// `page` relative to the checkout.
  page_run(std::string page, std::vector<page_rule> rules, page_changes changes);

  /// Before the first command of that section.
  void before(const std::string& section, std::function<void()> action);

  /// Goes through the page from top to bottom: whole cluster files become `cluster.toml`, commands
  /// are run. Fails the test, with page and line, when one does not do what the page says, and when
  /// a rule fits no command. What stays is interrupted at the end.
  void read();

  const std::filesystem::path& folder() const { return folder_.path(); }

  /// Kills what stays in a terminal, by words of its command; nobody asks how it ended.
  void kill_terminal(const std::string& words);

  /// Types a command and waits for its end; the exit code, and what it printed.
  std::pair<int, std::vector<std::string>> type(const std::string& command) const;

  /// Types it, and leaves it alone.
  void open_terminal(const std::string& command, const std::string& until);

private:
  struct opened {
    std::string command;
    std::string until;
    test::process shell;
  };

  void write_file(const page_block& block) const;
  void obey(const page_command& command);
  void check(const page_command& command, bool compare) const;
  void repeat(const page_command& command) const;
  void watch(const page_command& command) const;
  void wait_for_terminals();
  void close_terminals();
  std::string changed(std::string text) const;
  std::string place(const page_command& command) const;
  test::process start(const std::string& command) const;

  temporary_folder folder_;
  std::string page_;
  std::vector<page_rule> rules_;
  page_changes changes_;
  std::map<std::string, std::function<void()>> before_;
  std::map<std::string, std::size_t> used_; ///< How often a rule was.
  std::vector<opened> terminals_;
};

} // namespace troupe::tests
