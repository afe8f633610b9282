#include "actors/node/launcher.hpp"

#include "actors/host/host_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view error_mark = "troupe: error: ";
constexpr std::size_t last_lines = 5;

// A node that ran for so long may be started as often again as the policy says.
constexpr std::chrono::seconds good_run{60};
constexpr milliseconds longest_pause{30'000};

// The kind behind an exit code of `troupe node`; the inverse of exit_code().
errc kind_of(int code) {
  for (const auto kind : {errc::invalid_config,
                          errc::io_error,
                          errc::out_of_memory,
                          errc::unreachable,
                          errc::mismatch,
                          errc::cancelled}) {
    if (exit_code(kind) == code)
      return kind;
  }
  return errc::compute_error;
}

// What a node said last: its error, which may have several lines, or the end of its log.
std::string last_words(const fs::path& log) {
  std::ifstream in(log);
  std::ostringstream content;
  content << in.rdbuf();
  auto text = std::move(content).str();
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (const auto mark = text.rfind(error_mark); mark != std::string::npos)
    return text.substr(mark + error_mark.size());
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < last_lines && begin != std::string::npos && begin > 0;
       ++lines)
    begin = text.rfind('\n', begin - 1);
  return text.substr(begin == std::string::npos || begin == text.size() ? 0 : begin + 1);
}

} // namespace

/// One node's process.
class launcher::child {
public:
  child(std::string name, fs::path log, std::vector<std::string> command)
    : name_(std::move(name)), log_(std::move(log)), command_(std::move(command)) {}

  child(const child&) = delete;
  child& operator=(const child&) = delete;

  ~child() {
    if (!running())
      return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  result<void> start();

  // Starts it again if it ended by a fault and the pause is over; what happened, for people.
  result<std::optional<std::string>> tend(const restart_policy& policy);

  const std::string& name() const { return name_; }

  bool running() const { return pid_ > 0; }

  pid_t pid() const { return pid_; }

  bool alive() const { return running() || start_again_; }

  void signal(int number) {
    if (running())
      ::kill(pid_, number);
  }

  // Reaps it when it has ended.
  void look() {
    int status = 0;
    if (running() && ::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      status_ = status;
    }
  }

  void wait_until(clock::time_point give_up) {
    for (look(); running() && clock::now() < give_up; look())
      std::this_thread::sleep_for(milliseconds(2));
  }

  // Why it ended, where that was not in good order.
  std::optional<error> failure() const;

  void show_new_lines();

private:
  std::string name_;
  fs::path log_;
  std::vector<std::string> command_;
  clock::time_point started_{};
  std::size_t restarts_ = 0; // In a row.
  std::optional<clock::time_point> start_again_;
  pid_t pid_ = -1;
  int status_ = 0;
  std::size_t shown_ = 0; // Bytes of the log that were shown.
};

result<void> launcher::child::start() {
  const bool first = started_ == clock::time_point{};
  started_ = clock::now();
  std::vector<char*> words;
  for (const auto& word : command_)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int afresh = first ? O_TRUNC : 0;
  const int log = ::open(log_.c_str(), O_CREAT | afresh | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const pid_t parent = ::getpid();
  pid_ = log < 0 || nothing < 0 ? -1 : ::fork();
  if (pid_ == 0) { // Async-signal-safe calls only.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(127);
    ::setpgid(0, 0); // Ctrl-C on the terminal is the parent's to handle.
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv("/proc/self/exe", words.data());
    ::_exit(127);
  }
  const int why = errno;
  if (log >= 0)
    ::close(log);
  if (nothing >= 0)
    ::close(nothing);
  if (pid_ < 0)
    return error{
      errc::io_error,
      fmt::format("cannot start node {} (log {}): {}", name_, log_.string(), std::strerror(why))};
  return {};
}

result<std::optional<std::string>> launcher::child::tend(const restart_policy& policy) {
  using news = std::optional<std::string>;
  look();
  const auto why = failure();
  if (!why)
    return news{};
  const auto now = clock::now();
  if (!start_again_) {
    if (now - started_ >= good_run)
      restarts_ = 0;
    if (restarts_ >= policy.restarts)
      return policy.restarts == 0
               ? *why
               : with_context(fmt::format("node {} ended by a fault for the {}th time in a row "
                                          "(recovery.restarts = {})",
                                          name_,
                                          restarts_ + 1,
                                          policy.restarts),
                              *why);
    const auto pause = policy.pause * (std::size_t{1} << std::min<std::size_t>(restarts_, 16));
    start_again_ = now + std::min<milliseconds>(pause, longest_pause);
    return news{why->what};
  }
  if (now < *start_again_)
    return news{};
  start_again_.reset();
  ++restarts_;
  if (auto started = start(); !started)
    return started.error();
  return news{
    fmt::format("node {} is started again ({} of {})", name_, restarts_, policy.restarts)};
}

std::optional<error> launcher::child::failure() const {
  if (running() || status_ == 0)
    return std::nullopt;
  const auto words = last_words(log_);
  if (WIFEXITED(status_))
    return error{
      kind_of(WEXITSTATUS(status_)),
      words.starts_with("node ")
        ? words
        : fmt::format("node {}: {}", name_, words.empty() ? "ended without a word" : words)};
  const int number = WTERMSIG(status_);
  return error{errc::unreachable,
               fmt::format("node {} was ended by signal {} ({}); its last words:\n{}",
                           name_,
                           number,
                           ::strsignal(number),
                           words)};
}

void launcher::child::show_new_lines() {
  std::ifstream in(log_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(shown_));
  std::string line;
  while (std::getline(in, line) && !in.eof()) { // A line without its end comes next time.
    shown_ += line.size() + 1;
    fmt::print(stderr, "[{}] {}\n", name_, line);
  }
}

std::vector<std::size_t> nodes_of_this_host(const cluster_settings& settings) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < settings.nodes.size(); ++i) {
    if (belongs_to_this_host(settings.nodes[i].advertise))
      found.push_back(i);
  }
  return found;
}

result<std::unique_ptr<launcher>> launcher::start(const cluster_settings& settings,
                                                  const std::vector<std::size_t>& nodes,
                                                  const launch_options& options) {
  std::unique_ptr<launcher> made(new launcher);
  made->show_logs_ = options.show_logs;
  for (const auto index : nodes) {
    const auto& node = settings.nodes[index];
    std::vector<std::string> command{"troupe", "node", "--name", node.name};
    command.insert(command.end(), {"--run-folder", options.run_folder.string()});
    for (const auto& override : options.overrides)
      command.insert(command.end(), {"--set", override});
    if (!options.file.empty())
      command.push_back(options.file);
    auto one = std::make_unique<child>(
      node.name, options.run_folder / (node.name + ".log"), std::move(command));
    if (auto started = one->start(); !started)
      return started.error();
    const bool is_head = index == settings.head_index();
    made->children_.insert(is_head ? made->children_.begin() : made->children_.end(),
                           std::move(one));
  }
  return made;
}

launcher::~launcher() = default;

std::size_t launcher::running() const noexcept {
  return static_cast<std::size_t>(std::count_if(
    children_.begin(), children_.end(), [](const auto& one) { return one->running(); }));
}

bool launcher::alive() const noexcept {
  return std::any_of(
    children_.begin(), children_.end(), [](const auto& one) { return one->alive(); });
}

void launcher::show_new_lines() {
  if (!show_logs_)
    return;
  for (const auto& one : children_)
    one->show_new_lines();
}

std::optional<error> launcher::find_failure() {
  // Where several ended, one that lost its peers only suffered from another's end.
  std::optional<error> found;
  for (const auto& one : children_) {
    one->look();
    auto failure = one->failure();
    if (failure && (!found || found->code == errc::unreachable))
      found = std::move(failure);
  }
  show_new_lines();
  return found;
}

result<std::vector<std::string>> launcher::tend(const restart_policy& policy) {
  std::vector<std::string> told;
  std::optional<error> ended;
  for (const auto& one : children_) {
    auto news = one->tend(policy);
    if (!news && (!ended || ended->code == errc::unreachable)) // As in find_failure.
      ended = news.error();
    else if (news && *news)
      told.push_back(**news);
  }
  show_new_lines();
  if (ended)
    return *ended;
  return told;
}

std::optional<pid_t> launcher::process_of(const std::string& name) const {
  for (const auto& one : children_)
    if (one->name() == name && one->running())
      return one->pid();
  return std::nullopt;
}

void launcher::kill(const std::string& name) {
  for (const auto& one : children_)
    if (one->name() == name)
      one->signal(SIGKILL);
}

result<void> launcher::stop(milliseconds deadline) {
  const auto give_up = clock::now() + deadline;
  for (const auto& one : children_) {
    one->signal(SIGTERM);
    if (&one == &children_.front()) // Others end by the head's word, if it has one.
      one->wait_until(clock::now() + deadline / 2);
  }
  std::string killed;
  for (const auto& one : children_) {
    one->wait_until(give_up);
    if (!one->running())
      continue;
    killed += (killed.empty() ? "" : ", ") + one->name();
    one->signal(SIGKILL);
    one->wait_until(clock::now() + std::chrono::seconds(5));
  }
  show_new_lines();
  if (killed.empty())
    return {};
  return error{
    errc::timed_out,
    fmt::format("had to be killed after {} ms without an end: node {}", deadline.count(), killed)};
}

} // namespace troupe::actors
