#pragma once
// Nodes n0, n1, ... that are started again when they have ended, as a service manager would, and
// what they leave behind. Processes die with the thread that started them: one thread uses this.

#include "tests/support/cluster.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include <sys/types.h>

namespace troupe::tests {

class tended_nodes {
public:
  /// Starts them; does not wait.
  tended_nodes(const cluster& where, std::size_t count);

  /// Tells all to end (the head takes the others along), and those that do not within ten seconds
  /// are killed.
  ~tended_nodes();

  tended_nodes(const tended_nodes&) = delete;
  tended_nodes& operator=(const tended_nodes&) = delete;

  std::size_t size() const { return nodes_.size(); }

  pid_t pid(std::size_t index) const { return nodes_.at(index).pid(); }

  void signal(std::size_t index, int number) { nodes_.at(index).signal(number); }

  /// How a node that is not started again ended; nullopt when it did not in time.
  std::optional<test::ending> ended(std::size_t index, std::chrono::milliseconds patience) {
    return nodes_.at(index).wait(patience);
  }

  void start(std::size_t index);

  /// Starts those again that have ended; how many.
  std::size_t tend();

  /// Whether its process is stopped.
  bool stands_still(std::size_t index) const;

  /// Sets a process that stands still aside, and starts another one in its place.
  void replace(std::size_t index);

  /// Lets the processes that were set aside go on, and waits for their ends; what was wrong with
  /// one: it did not end, or as if all was well. SIGABRT is an end: UCX 1.13 has an assertion that
  /// fails where a TCP connection was half made when the process was stopped.
  std::string wake();

  /// Every process that it started.
  const std::set<pid_t>& all_pids() const { return all_; }

  /// What a node has said in all its lives.
  std::string words(std::size_t index) const;

private:
  std::filesystem::path log_of(std::size_t index) const;
  test::process born(std::size_t index);

  const cluster& where_;
  std::vector<test::process> nodes_;
  std::vector<test::process> aside_;
  std::set<pid_t> all_;
};

} // namespace troupe::tests
