#pragma once
// Long calls that a stop signal ends.

#include "actors/cli/command.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace troupe::cli {

/// Sets a flag when a stop signal comes, from a thread of its own, as long as it lives.
class cancel_on_signal {
public:
  explicit cancel_on_signal(std::atomic<bool>& cancel)
    : watcher_([this, &cancel] {
        while (!done_ && !cancel)
          if (wait_for_stop_signal(std::chrono::milliseconds(50)) != 0)
            cancel = true;
      }) {}

  ~cancel_on_signal() {
    done_ = true;
    watcher_.join();
  }

private:
  std::atomic<bool> done_{false};
  std::thread watcher_; // Last: it uses the members above.
};

} // namespace troupe::cli
