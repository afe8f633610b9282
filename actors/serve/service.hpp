#pragma once
// What all requests of one server share: where the work goes, what the model is, and the present
// state of the cluster. Made once; any thread.

#include "actors/messages.hpp"
#include "actors/serve/answer_counts.hpp"
#include "actors/serve/api_answer.hpp"
#include "actors/serve/api_request.hpp"
#include "actors/serve/readiness.hpp"
#include "actors/serve/viewers.hpp"
#include "compute/chat/chat_format.hpp"
#include "compute/tokenizer/tokenizer.hpp"
#include "config/settings.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::actors::serve {

/// The last word of the director, and what follows from it.
class cluster_pulse {
public:
  using clock = std::chrono::steady_clock;

  explicit cluster_pulse(std::chrono::milliseconds bound) : judged_(bound, clock::now()) {}

  void hear(cluster_status known) {
    const std::lock_guard lock(mutex_);
    judged_.hear(known, clock::now());
    known_ = std::make_shared<const cluster_status>(std::move(known));
  }

  void miss(clock::time_point asked) {
    const std::lock_guard lock(mutex_);
    judged_.miss(asked, clock::now());
  }

  struct beat {
    bool ready = false;
    std::string reason;
    std::chrono::milliseconds since{};
  };

  beat read() const {
    const std::lock_guard lock(mutex_);
    return {judged_.ready(), judged_.reason(), judged_.since(clock::now())};
  }

  /// Null before the first answer.
  std::shared_ptr<const cluster_status> status() const {
    const std::lock_guard lock(mutex_);
    return known_;
  }

private:
  mutable std::mutex mutex_;
  readiness judged_;
  std::shared_ptr<const cluster_status> known_;
};

struct service {
  explicit service(const cluster_settings& from)
    : settings(from), pulse(std::chrono::milliseconds(from.deadlines.progress_ms)) {}

  const cluster_settings& settings;
  gateway_actor gateway;
  std::shared_ptr<const compute::tokenizer> words;
  std::shared_ptr<const compute::chat::chat_format> chat; ///< Null: the model has none, or ...
  std::string no_chat;                                    ///< ... a damaged one; says which.
  model_facts model;
  api_rules rules;
  cluster_pulse pulse;
  answer_counts answers;
  std::shared_ptr<viewers> watched = std::make_shared<viewers>();
  std::atomic<int> at_work{0};               ///< Actors that answer requests.
  std::atomic<std::uint64_t> answer_ms{500}; ///< A moving average, for Retry-After.
};

using service_handle = std::shared_ptr<service>;

/// Held by an actor that answers, from its spawning on: the server waits for it when it stops.
using work_token = std::shared_ptr<void>;

inline work_token count_work(const service_handle& shared) {
  shared->at_work.fetch_add(1, std::memory_order_relaxed);
  return {nullptr, [shared](void*) { shared->at_work.fetch_sub(1, std::memory_order_relaxed); }};
}

/// How long somebody who is told "not now" had better wait.
unsigned retry_after_s(const service& shared);

} // namespace troupe::actors::serve
