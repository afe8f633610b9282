#pragma once
// What a cluster gives over time, as a picture: tokens a second, and the ranks that gave them.

#include "tests/support/cluster.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace troupe::tests {

class rate_plot {
public:
  /// Asks `troupe status` again and again, on a thread of its own, until write().
  explicit rate_plot(const cluster& where);
  ~rate_plot();
  rate_plot(const rate_plot&) = delete;
  rate_plot& operator=(const rate_plot&) = delete;

  /// Ends the watch and writes the picture (SVG).
  void write(const std::filesystem::path& file);

  /// Tokens that the cluster gave while this watched.
  double tokens() const { return samples_.empty() ? 0 : samples_.back().tokens; }

private:
  struct sample {
    double seconds = 0;
    double tokens = 0; ///< Since the first sample.
    std::size_t ranks = 0;
  };

  std::vector<double> rates() const;
  void watch();
  void end();

  const cluster& where_;
  std::vector<sample> samples_;
  std::atomic<bool> done_{false};
  std::thread watcher_; // Last: it uses the members above.
};

} // namespace troupe::tests
