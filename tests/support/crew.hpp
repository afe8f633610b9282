#pragma once
// Nodes that a test starts, stops and kills one by one, and requests that run meanwhile.

#include "tests/support/cluster.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace troupe::tests {

/// Asks `troupe status --json` until it mentions `words`; false when it never did.
bool status_becomes(const cluster& where,
                    const std::string& words,
                    std::chrono::milliseconds patience);

/// The process of a node, as the status tells it; 0 while it is away.
pid_t process_of(const cluster& where, const std::string& node);

/// In the status of a cluster that serves.
inline const std::string serving = "\"phase\":\"serving\"";

/// A cluster of nodes n0, n1, ...
class crew {
public:
  /// Starts the first `nodes` of them and waits until the cluster serves; ends the test where it
  /// does not.
  crew(const cluster& where, std::size_t nodes);

  test::process& node(std::size_t index) { return nodes_.at(index); }

  void kill(std::size_t index);

  /// Starts a node (again).
  void start(std::size_t index);

  /// The counters of the ranks.
  std::vector<std::map<std::string, std::uint64_t>> gauges() const;

  /// The epoch that serves, or the last one that did.
  std::uint64_t epoch() const;

  /// Waits until the cluster serves with so many ranks, in an epoch after `last`; false when it did
  /// not.
  bool
  serves_with(std::size_t ranks, std::chrono::milliseconds patience, std::uint64_t last = 0) const;

private:
  const cluster& where_;
  std::map<std::size_t, test::process> nodes_;
};

/// `troupe generate --json --digests` in the background against a cluster that serves.
class background_requests {
public:
  /// `often`: all of them once, or again and again until compare().
  enum class often { once, again };
  background_requests(const cluster& where,
                      const std::vector<std::string>& lines,
                      often how = often::once);
  ~background_requests();
  background_requests(const background_requests&) = delete;
  background_requests& operator=(const background_requests&) = delete;

  /// Ends once every request has: each must equal, bit by bit, what an unharmed cluster gave.
  void compare(const std::vector<told_answer>& expected);

private:
  std::vector<std::vector<told_answer>> found_; ///< By round.
  std::string words_;                           ///< Of a round that failed.
  std::atomic<bool> enough_;
  std::thread running_;
};

/// `count` requests of different lengths for `tokens` tokens each.
std::vector<std::string> some_requests(std::size_t count, std::size_t tokens);

} // namespace troupe::tests
