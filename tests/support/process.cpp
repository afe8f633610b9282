#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

namespace troupe::test {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* role_flag = "--role";

std::map<std::string, std::function<int(parent&)>>& roles() {
  static std::map<std::string, std::function<int(parent&)>> all;
  return all;
}

void write_line(int to, std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    const auto written = ::write(to, line.data() + done, line.size() - done);
    if (written < 0 && errno != EINTR)
      return;
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

std::optional<std::string> cut_line(std::string& pending) {
  const auto end = pending.find('\n');
  if (end == std::string::npos)
    return std::nullopt;
  auto line = pending.substr(0, end);
  pending.erase(0, end + 1);
  return line;
}

std::optional<std::string> read_line(int from, std::string& pending, milliseconds deadline) {
  const auto give_up = clock::now() + deadline;
  while (true) {
    if (auto line = cut_line(pending))
      return line;
    const auto left = std::chrono::duration_cast<milliseconds>(give_up - clock::now());
    pollfd readable{from, POLLIN, 0};
    if (left.count() < 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0)
      return std::nullopt;
    char block[4096];
    const auto count = ::read(from, block, sizeof block);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
      return pending.empty() ? std::nullopt : std::optional(std::exchange(pending, {}));
    if (count > 0)
      pending.append(block, static_cast<std::size_t>(count));
  }
}

struct pipe_ends {
  int read = -1;
  int write = -1;
};

pipe_ends make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::perror("pipe2");
    std::abort();
  }
  return {ends[0], ends[1]};
}

/// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* command,
                         char* const* environment,
                         const pipe_ends& in,
                         const pipe_ends& out,
                         bool join_errors,
                         pid_t starter) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != starter) // It died before the line above.
    ::_exit(127);
  ::dup2(in.read, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  if (join_errors)
    ::dup2(out.write, STDERR_FILENO);
  ::execve(command[0], command, environment);
  ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> found;
  for (const auto& string : strings)
    found.push_back(const_cast<char*>(string.c_str()));
  found.push_back(nullptr);
  return found;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  // No name twice: which entry counts then depends on who reads them.
  const auto is_replaced = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(added.begin(), added.end(), [&](const auto& one) {
      return std::string_view{one}.starts_with(name);
    });
  };
  auto all = added;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry))
      all.emplace_back(*entry);
  return all;
}

} // namespace

void parent::say(const std::string& line) const {
  write_line(STDOUT_FILENO, line);
}

std::optional<std::string> parent::hear(milliseconds deadline) {
  return read_line(STDIN_FILENO, pending_, deadline);
}

role::role(std::string name, std::function<int(parent&)> body) {
  roles().emplace(std::move(name), std::move(body));
}

std::optional<int> run_role(int argc, char** argv) {
  if (argc < 3 || std::string(argv[1]) != role_flag)
    return std::nullopt;
  const auto found = roles().find(argv[2]);
  if (found == roles().end()) {
    std::fprintf(stderr, "no role %s\n", argv[2]);
    return 127;
  }
  parent told(std::vector<std::string>(argv + 3, argv + argc));
  return found->second(told);
}

process process::start(const std::string& role_name,
                       const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
  std::vector<std::string> command{"/proc/self/exe", role_flag, role_name};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, environment);
}

process process::run(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment,
                     bool join_errors) {
  ::signal(SIGPIPE, SIG_IGN); // A child that is gone is an answer, not the end of the test.
  const auto words = pointers(command);
  const auto full_environment = environment_with(environment);
  const auto entries = pointers(full_environment);
  const auto in = make_pipe();
  const auto out = make_pipe();
  const pid_t starter = ::getpid();
  process made;
  made.pid_ = ::fork();
  if (made.pid_ == 0)
    become(words.data(), entries.data(), in, out, join_errors, starter);
  if (made.pid_ < 0) {
    std::perror("fork");
    std::abort();
  }
  ::close(in.read);
  ::close(out.write);
  made.input_ = in.write;
  made.output_ = out.read;
  return made;
}

process::process(process&& other) noexcept {
  *this = std::move(other);
}

process& process::operator=(process&& other) noexcept {
  if (this == &other)
    return *this;
  end();
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  pending_ = std::move(other.pending_);
  ended_ = other.ended_;
  return *this;
}

process::~process() {
  end();
}

void process::end() noexcept {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  finish_input();
  if (output_ >= 0)
    ::close(std::exchange(output_, -1));
}

void process::say(const std::string& line) {
  if (input_ >= 0)
    write_line(input_, line);
}

void process::finish_input() {
  if (input_ >= 0)
    ::close(std::exchange(input_, -1));
}

std::optional<std::string> process::hear(milliseconds deadline) {
  return read_line(output_, pending_, deadline);
}

std::vector<std::string> process::hear_all(milliseconds deadline) {
  const auto give_up = clock::now() + deadline;
  std::vector<std::string> lines;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(give_up - clock::now());
    auto line = hear(std::max(left, milliseconds(0)));
    if (!line)
      return lines;
    lines.push_back(std::move(*line));
  }
}

bool process::signal(int number) {
  return pid_ > 0 && ::kill(pid_, number) == 0;
}

std::optional<ending> process::wait(milliseconds deadline) {
  const auto give_up = clock::now() + deadline;
  while (!ended_) {
    int status = 0;
    if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      ended_ = ending{WIFEXITED(status),
                      WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                      WIFSIGNALED(status) ? WTERMSIG(status) : 0};
      break;
    }
    if (clock::now() > give_up)
      return std::nullopt;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return ended_;
}

} // namespace troupe::test
