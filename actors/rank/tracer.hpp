#pragma once
// Notes the next steps of a rank, or of the conductor, while somebody asked for that. One thread.
// Costs a look at a flag while nobody did.

#include "actors/messages/observing.hpp"
#include "actors/messages/steps.hpp"

#include <chrono>
#include <map>
#include <optional>

namespace troupe::actors {

/// By the clock that all times of a trace are of, before nodes' clocks are brought together.
inline std::uint64_t steady_ns(std::chrono::steady_clock::time_point when) noexcept {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

class tracer {
public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Steps that begin from now on count. With 0 steps what there is ends the trace.
  void start(const trace_order& order);

  bool on() const noexcept { return serial_ != 0; }

  void begin(const step_plan& plan, time_point at);

  /// Something within the step that began last.
  void add(trace_kind kind, time_point begin, time_point end, std::uint64_t detail);

  void end(step_id step, time_point at);

  /// What was begun and has not ended never will.
  void forget_open() { open_.clear(); }

  /// The whole, once; its places are left to the caller.
  std::optional<trace_part> take();

private:
  std::uint64_t serial_ = 0; ///< 0: nobody asked.
  std::uint32_t left_ = 0;   ///< Steps that are still to begin.
  bool over_ = false;        ///< Asked to hand over what there is.
  std::map<step_id, traced_step> open_;
  step_id last_{};
  trace_part made_;
};

} // namespace troupe::actors
