#pragma once
// What the director knows. One door changes its phase (step). Joining, loading and epochs are in
// director.cpp; who sits where, and plans that change, in director_seats.cpp; what is looked at
// from time to time in director_watch.cpp; what people are told in director_status.cpp,
// director_events.cpp and director_trace.cpp.

#include "actors/director/director.hpp"
#include "actors/director/director_phases.hpp"
#include "actors/director/membership.hpp"
#include "actors/director/placement.hpp"
#include "config/log.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

class director_state {
public:
  static inline const char* name = "director";
  using self_pointer = director_actor::stateful_pointer<director_state>;

  /// The only door; see rank_state::step.
  template <class Act>
  bool step(director_input input, Act act) {
    const auto& cell = director_phases.at(phase_, input);
    if (cell.what != verdict::go)
      return false;
    if (phase_ != cell.next) {
      log::info("director epoch {}: {} --{}--> {}",
                number(epoch_),
                director_phases.name(phase_),
                director_phases.name(input),
                director_phases.name(cell.next));
      phase_since_ = clock::now();
    }
    phase_ = cell.next;
    act();
    return true;
  }

  void start(self_pointer actor, director_setup given);
  caf::result<node_welcome> take(const node_hello& hello, const node_actor& node);
  cluster_terms terms() const;
  void take(const rank_loaded& report);
  void take(const rank_rewired& report);
  void take(const rank_joined& report);
  void take(const rank_fault& fault);
  void node_gone(const caf::actor_addr& who, const std::string& reason);
  void beat(const node_beat& what);
  caf::result<void> drain(const node_drain& which);
  cluster_status status() const;
  caf::result<fault_receipt> take(const fault_order& order);
  caf::result<trace_report> take(const trace_order& order);
  void take(const trace_part& part);
  void look();
  void stop(const std::string& reason);

private:
  using clock = std::chrono::steady_clock;

  /// A rank's place on a node, whatever its number in a plan.
  using host_place = std::pair<std::size_t, std::uint32_t>; ///< Node, index.

  static host_place place_of(const rank_plan& rank) {
    return {rank.node, static_cast<std::uint32_t>(rank.index_in_node)};
  }

  /// A shard that a rank was told to load, and its answer.
  struct holding {
    shard_assignment what;
    std::optional<rank_loaded> report;
    bool wired = true; ///< Can be reached; not since an epoch ended, until it says so.
  };

  /// One at a time.
  struct trace_under_way {
    trace_order order;
    clock::time_point until;
    trace_report report;
    caf::typed_response_promise<trace_report> answer;
  };

  /// A rank that held state when the cluster last served, and of which layers.
  struct state_source {
    host_place place;
    range units;
    std::size_t tensor = 0;
  };

  /// A plan that is prepared while another one serves.
  struct coming_plan {
    cluster_plan plan;
    std::vector<std::size_t> nodes;
  };

  // director_seats.cpp
  result<void> take_guest(const node_hello& hello);
  void see_off(std::size_t node);
  void count_stages(cluster_settings& settings) const;
  void gather();
  bool may_go_without() const;
  result<void> adopt(const std::vector<std::size_t>& nodes);
  void consider_plan();
  void switch_plan();
  void release_drained();
  void assign(const cluster_plan& plan, const std::set<std::size_t>& except);
  void plan_moves(epoch_plan& plan) const;
  bool sources_wired() const;
  bool holds(const cluster_plan& plan, const rank_plan& rank) const;
  bool is_placed(std::size_t node) const;
  const holding* holding_of(const rank_plan& rank) const; ///< Null: its place was told nothing.

  // director_watch.cpp
  void watch(clock::time_point now);
  void look_at_deadlines(clock::time_point now);
  void expel(std::size_t node, const std::string& reason);
  bool is_output_lost(clock::time_point now, std::chrono::milliseconds bound);
  void give_up_linking();
  std::string unloaded() const;

  // director_events.cpp
  void tell(std::string what, std::string done = {});
  void tell_joined(const std::string& node);
  void tell_serving();
  void lose_epoch(const std::string& reason, bool node_missing = false);

  // director_trace.cpp
  void ask_for_trace(const trace_order& order);
  void look_at_trace(clock::time_point now);
  void answer_trace();

  void take_held(std::size_t node, const node_hello& hello);
  void lose_shard(std::size_t node, const error& why);
  std::string name_rank(rank_id id) const;
  std::string unlinked() const; ///< Ranks that have not met all neighbours of the epoch.
  std::optional<host_place> place_of_sender(std::uint32_t index) const;
  bool all_loaded() const;
  void link_if_loaded();
  void link();
  void serve();
  void fence_epoch(const std::string& reason, bool node_missing = false);
  void fail(const error& why);
  void end_nodes(const node_stop& order);
  void finish();
  result<void> compare_digests(const rank_loaded& report);

  self_pointer self_ = nullptr;
  director_setup setup_;
  cluster_settings settings_; ///< With guests behind the nodes of the file.
  std::unique_ptr<membership> members_;
  std::unique_ptr<placement> seats_;
  cluster_plan plan_;               ///< The present one.
  std::vector<std::size_t> placed_; ///< The nodes that it places ranks on.
  std::optional<coming_plan> coming_;
  std::map<host_place, holding> held_;
  std::uint64_t last_serial_ = 0;     ///< Of assignments.
  std::vector<state_source> sources_; ///< Until they are asked for their state, once.
  bool restaged_ = false; ///< The plan is another one than when the cluster last served.
  director_phase phase_ = director_phase::gathering;
  clock::time_point born_ = clock::now();
  clock::time_point phase_since_ = born_;
  std::optional<clock::time_point> unlinked_since_; ///< The first attempt of this series.
  bool served_ = false; ///< Whether the cluster was ready once; joining has no deadline then.
  std::string reason_;  ///< Why it does not serve.
  error failure_{errc::unreachable, {}};
  bool failed_ = false;
  epoch_id epoch_{};
  std::uint64_t incarnation_ = std::random_device{}();
  std::map<std::string, std::pair<std::string, rank_id>> digests_; ///< Part: digest, owner.
  bool conductor_wired_ = true;
  clock::time_point fenced_at_{}; ///< When the last epoch ended.
  clock::time_point looked_at_ = born_;
  std::uint64_t steps_seen_ = 0;          ///< Steps that the conductor had planned ...
  clock::time_point steps_since_ = born_; ///< ... and since when it waits for an output.
  std::set<rank_id> joined_;
  std::map<rank_id, std::string> links_;
  std::map<std::size_t, std::vector<fault_order>> orders_; ///< For nodes that were not here.
  std::deque<cluster_event> events_; ///< The last ones; open while nothing was done about them.
  std::string came_back_;            ///< Nodes that joined while an event is open.
  std::uint64_t epochs_lost_ = 0;    ///< By faults.
  std::uint64_t recoveries_ = 0;
  bool unrecovered_ = false;
  std::optional<trace_under_way> trace_;
  std::uint64_t last_trace_ = 0;
};

} // namespace troupe::actors
