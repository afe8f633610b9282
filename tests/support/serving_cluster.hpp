#pragma once
// A cluster that serves as long as an object lives, and what `troupe status` says about it.

#include "tests/support/cluster.hpp"

#include <chrono>

namespace troupe::tests {

class serving_cluster {
public:
  /// `troupe up FILE <more>`; ends the test when it does not serve within 30 s.
  explicit serving_cluster(const cluster& which, const std::vector<std::string>& more = {});

  /// Tells it to stop and waits for that.
  ~serving_cluster();

  serving_cluster(const serving_cluster&) = delete;
  serving_cluster& operator=(const serving_cluster&) = delete;

  /// What it printed until it served.
  const std::string& words() const { return words_; }

  /// Of its HTTP server, which [serve] must have asked for.
  std::uint16_t http_port() const;

  /// Asks for `troupe status --json` until a number of that name, anywhere in it, is `wanted`:
  /// counters arrive with the next beat. False after five seconds.
  bool becomes(const std::string& name, std::uint64_t wanted) const;

  /// `troupe status --json` as one text, after the next beat.
  std::string status() const;

  /// The counters of the ranks, after the next beat.
  std::vector<std::map<std::string, std::uint64_t>> gauges() const;

private:
  const cluster& which_;
  test::process up_;
  std::string words_;
};

/// The port in "... http://127.0.0.1:8080 ..."; ends the test when there is none.
std::uint16_t port_in(const std::string& words);

/// The number behind the first `"name":` of a JSON text; ends the test when there is none.
std::uint64_t number_in(const std::string& json, const std::string& name);

} // namespace troupe::tests
