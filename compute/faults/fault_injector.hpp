#pragma once
// Makes the faults of one rank, or of the conductor, happen. The owner tells what it does (a step,
// a layer, a phase); the decorators around its wires, its device and its group ask what goes wrong
// with a frame or a call. Each fault counts the events that its moment speaks of, from when it
// became known; no clock decides anything.
//
// Made only where faults are asked for: who has none has no injector and no decorators.

#include "compute/faults/fault_trace.hpp"
#include "config/fault.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::compute {

/// Used on its owner's thread, except for what says otherwise.
class fault_injector {
public:
  /// Faults of other places are passed over.
  fault_injector(std::uint32_t self, const std::vector<fault>& faults, fault_trace trace);

  /// Says in the log which faults never happened.
  ~fault_injector();

  fault_injector(const fault_injector&) = delete;
  fault_injector& operator=(const fault_injector&) = delete;

  /// One more fault; events are counted from now on.
  void add(const fault& what);

  /// The owner is another rank from now on; its faults count from here.
  void move_to(std::uint32_t self);

  // -- what the owner does; each may end the process or hold the thread up -----------------------

  void begin_step();
  void begin_layer(std::uint64_t layer);
  void end_layer(std::chrono::nanoseconds took);
  void enter_phase(std::string_view name);
  void begin_load();
  void load(std::uint64_t done, std::uint64_t total);

  // -- what the decorators ask, once for each frame or call --------------------------------------

  /// The faults that meet the frame which is about to be sent to `peer`.
  std::vector<fault> meet_frame(std::uint32_t peer);

  /// Whether the link to a peer takes nothing now.
  bool is_cut(std::uint32_t peer) const;

  /// Whether a connect or a send to `peer` fails.
  bool refuses_transport(std::uint32_t peer);

  bool refuses_allocation();

  /// A seed for the place of a value that is to be no number.
  std::optional<std::uint64_t> spoils_activation();

  std::optional<fault> meet_collective();

  // -- any thread --------------------------------------------------------------------------------

  /// Ends standing still, now and later: the process wants to end.
  void release() noexcept { released_.store(true, std::memory_order_relaxed); }

  /// Faults that happened.
  std::uint64_t made() const noexcept { return made_.load(std::memory_order_relaxed); }

private:
  using clock = std::chrono::steady_clock;

  struct armed {
    fault what;
    fault_spot spot;
    std::uint64_t threshold = 1; ///< Events until it happens for the first time.
    std::uint64_t before = 0;    ///< How often it happened in earlier lives of the process.
    std::uint64_t here = 0;      ///< ... and in this one.
    std::uint64_t seen = 0;      ///< Events.

    bool due() const { return before + here < what.times && seen >= threshold + here; }
  };

  template <class Matches>
  void count(fault_event event, Matches matches);
  void arm(const fault& what);
  void name_missed() const;
  void count_call(bool (*meets)(fault_action));
  void act_on_thread();
  void make(armed& which);
  void perform(const fault& what);
  std::string now() const;
  std::optional<std::chrono::nanoseconds> duration(const fault& what) const;

  std::uint32_t self_;
  const fault_trace trace_;
  std::vector<fault> known_; ///< Of all places.
  std::vector<armed> armed_;
  std::uint64_t steps_ = 0;
  std::optional<std::uint64_t> layer_;
  std::uint64_t messages_ = 0;
  std::string phase_;
  bool loading_ = false;
  std::uint64_t percent_ = 0;
  double slow_factor_ = 1;
  std::optional<std::uint64_t> slow_until_;                    ///< A step; nothing: for good.
  std::map<std::uint32_t, std::optional<std::uint64_t>> cuts_; ///< Peer: until which step.
  std::optional<clock::time_point> step_begun_;
  std::chrono::nanoseconds step_time_{0}; ///< Of all steps that followed another at once.
  std::uint64_t steps_timed_ = 0;
  std::atomic<bool> released_{false};
  std::atomic<std::uint64_t> made_{0};
};

} // namespace troupe::compute
