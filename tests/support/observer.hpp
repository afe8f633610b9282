#pragma once
// What a running cluster shows of itself, asked over its control port as `troupe status` asks, but
// from within the test: a look takes less than a millisecond, so that moments can be measured.

#include "config/result.hpp"
#include "config/settings.hpp"
#include "tests/support/cluster.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace troupe::actors {
class cluster_client;
}

namespace troupe::tests {

using test_clock = std::chrono::steady_clock;

/// A cluster at one moment.
struct sight {
  struct node {
    std::string name;
    std::string state;
    std::string reason;
  };

  struct rank {
    std::string node;
    std::uint64_t rows = 0;
    std::uint64_t rows_replayed = 0;
    std::uint64_t compute_ns = 0;
    std::string phase;
    std::uint64_t step = 0;
    bool in_collective = false;
    std::uint64_t progress = 0;
  };

  test_clock::time_point when;
  std::string phase;
  std::string reason;
  std::uint64_t epoch = 0;
  std::vector<node> nodes;
  std::vector<rank> ranks;
  std::uint64_t queued = 0;
  std::uint64_t running = 0;
  std::uint64_t in_flight = 0; ///< Steps.
  std::uint64_t pages_used = 0;

  bool serves() const { return phase == "serving"; }

  bool lost(const std::string& name) const;

  /// For people.
  std::string text() const;
};

/// A client of a cluster. One thread. Heads may come and go: it finds the next one.
class observer {
public:
  explicit observer(const cluster& where);
  ~observer();
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;

  /// nullopt while there is no head.
  std::optional<sight> look();

  /// Looks every few milliseconds until it sees what is wanted; nullopt when that did not come.
  std::optional<sight> look_until(const std::function<bool(const sight&)>& wanted,
                                  std::chrono::milliseconds patience);

  /// As `troupe inject`.
  result<std::string> inject(const fault_settings& wanted);

  /// Runs lines of prompts (token_prompt), with digests; `heard` is called with each piece of text.
  /// Nothing where there is no head.
  std::vector<told_answer> generate(const std::vector<std::string>& lines,
                                    const std::function<void()>& heard);

private:
  bool connect();

  const cluster& where_;
  cluster_settings settings_;
  std::unique_ptr<actors::cluster_client> client_;
};

/// Requests that run in the background, and when each piece of their answers came.
class live_requests {
public:
  live_requests(const cluster& where, const std::vector<std::string>& lines);
  ~live_requests();
  live_requests(const live_requests&) = delete;
  live_requests& operator=(const live_requests&) = delete;

  bool done() const { return done_; }

  std::size_t pieces() const;

  /// The first piece after a moment; nullopt when there was none.
  std::optional<test_clock::time_point> first_after(test_clock::time_point moment) const;

  /// Waits for the ends.
  const std::vector<told_answer>& answers();

private:
  std::vector<told_answer> answers_;
  mutable std::mutex mutex_;
  std::vector<test_clock::time_point> heard_;
  std::atomic<bool> done_{false};
  std::thread running_; // Last: it uses the members above.
};

} // namespace troupe::tests
