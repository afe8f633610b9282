#pragma once
// Real processes for tests: a role is a function of the test program that runs in a process of its
// own (fork, then exec of the same program). Parent and child talk in lines over the child's
// standard input and output. A child dies with the thread that started it and is killed and reaped
// by the destructor, also when a test fails. Suites that use it say PROCESSES in add_suite().

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::test {

/// What a role sees of its parent.
class parent {
public:
  explicit parent(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}

  const std::vector<std::string>& arguments() const noexcept { return arguments_; }

  /// One line to the parent, which hears it at once.
  void say(const std::string& line) const;

  /// The parent's next line; nullopt when none came in time or the parent is gone.
  std::optional<std::string> hear(std::chrono::milliseconds deadline);

private:
  std::vector<std::string> arguments_;
  std::string pending_;
};

/// Registers a role; define one at namespace scope of a test file:
/// `const role echo("echo", [](parent& p) { ...; return 0; });` The result is the exit code.
class role {
public:
  role(std::string name, std::function<int(parent&)> body);
};

/// How a process ended.
struct ending {
  bool exited = false; ///< By itself; `code` is its exit code, otherwise `signal` ended it.
  int code = 0;
  int signal = 0;
};

/// A child process. Owned by one test, used on its thread.
class process {
public:
  /// Starts a role of this program. Extra environment entries are "NAME=value".
  static process start(const std::string& role_name,
                       const std::vector<std::string>& arguments = {},
                       const std::vector<std::string>& environment = {});

  /// Starts another program: command[0] is its path. Standard error goes with standard output when
  /// `join_errors`.
  static process run(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment = {},
                     bool join_errors = false);

  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;
  ~process();

  pid_t pid() const noexcept { return pid_; }

  /// One line to the child's standard input; ignored when it is gone.
  void say(const std::string& line);

  /// Closes the child's standard input.
  void finish_input();

  /// The child's next line; nullopt when none came in time or it closed its output.
  std::optional<std::string> hear(std::chrono::milliseconds deadline);

  /// All lines that follow until the child closes its output, or those that came in time.
  std::vector<std::string> hear_all(std::chrono::milliseconds deadline);

  /// Sends a signal; false when the process was reaped before.
  bool signal(int number);

  /// Waits for the end; nullopt when it did not come in time.
  std::optional<ending> wait(std::chrono::milliseconds deadline);

private:
  process() = default;

  void end() noexcept;

  pid_t pid_ = -1; ///< -1 once reaped.
  int input_ = -1;
  int output_ = -1;
  std::string pending_;
  std::optional<ending> ended_;
};

/// Runs the role that the command line names, if it names one; its exit code.
std::optional<int> run_role(int argc, char** argv);

} // namespace troupe::test
