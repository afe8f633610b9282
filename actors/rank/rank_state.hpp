#pragma once
// What a rank knows. One door changes its phase (step); the parts of a pass are in rank_pass.cpp,
// loading in rank.cpp, epochs in rank_epochs.cpp, state that moves when a plan changes in
// rank_moves.cpp.

#include "actors/rank/boundary_log.hpp"
#include "actors/rank/group.hpp"
#include "actors/rank/rank.hpp"
#include "actors/rank/slot_rules.hpp"
#include "actors/rank/state_moves.hpp"
#include "actors/rank/tracer.hpp"
#include "actors/wires/codec.hpp"
#include "compute/partition.hpp"
#include "config/log.hpp"

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace troupe::actors {

class rank_state {
public:
  static inline const char* name = "rank";
  using self_pointer = rank_actor::stateful_pointer<rank_state>;

  /// The only door: refuses a stale epoch, looks the input up, logs the transition, enters, acts.
  /// `epoch` is nothing for inputs that belong to no epoch. Between epochs, inputs of a pass wait
  /// for the plan of theirs.
  template <class Act>
  caf::result<void> step(rank_input input, std::optional<epoch_id> epoch, Act act) {
    if (epoch && *epoch != epoch_) {
      if (waits_for_plan(phase_, input))
        return caf::skip;
      rank_board::add(setup.board->stale_frames, 1);
      return caf::unit;
    }
    const auto& cell = rank_phases.at(phase_, input);
    switch (cell.what) {
    case verdict::hold: return caf::skip;
    case verdict::drop: return caf::unit;
    case verdict::refuse: refuse(input); return caf::unit;
    case verdict::go: break;
    }
    enter(input, cell.next);
    act();
    return caf::unit;
  }

  void start(self_pointer actor, rank_setup given);

  // Inputs, each behind step().
  void load(const shard_assignment& what);
  void join(const epoch_plan& plan);
  void look_for_peers();
  void take(const state_manifest& message);
  void take(const state_page& message, const compute::buffer& bytes);
  void serve();
  void begin_with_tokens(const step_tokens& message);
  void expect_rows(const step_rows& message);
  void send_again(const step_plan& plan);
  void begin_with_rows(const partition_input& message, const compute::buffer& tensor);
  void release(const std::vector<slot_id>& slots);
  void run_unit();
  void leave_group();
  void finish_pass();
  void lose_peer(const peer_down& message);
  void end_epoch(const fence& message);
  void stop();

  /// Something is to go wrong, in whatever phase.
  void take(const fault_order& order);

  /// The next steps are to be noted, in whatever phase.
  void take(const trace_order& order);

  /// Whether a peer was of the last plan only, and gave away all that it had.
  bool has_left(transport::peer_key peer) const;

  rank_setup setup;

private:
  struct live_slot {
    std::vector<page_id> pages;
    std::uint32_t length = 0;          ///< Positions in the state: the checkpoint of the next pass.
    range rows;                        ///< Positions whose rows are kept (kept_).
    std::shared_ptr<slot_rules> rules; ///< Null: none; only where the rank publishes.
    /// Positions in the state if the last step that began was committed. A member of a group may
    /// miss the end of one that the others completed with what it had brought; what it keeps of
    /// that step is in the state by then.
    std::uint32_t begun = 0;
  };

  using clock = std::chrono::steady_clock;

  void enter(rank_input input, rank_phase next);
  void refuse(rank_input input);
  void give_up(rank_input input, const error& why);
  result<void> load_shard(const shard_assignment& what);
  result<void> connect_neighbours();
  result<void> join_group();
  result<void> meet(rank_id other);
  rank_actor handle_of(rank_id other) const;
  result<void> connect(transport::peer_key key, const byte_string& address);
  rank_id neighbour(std::uint32_t stage, std::uint32_t tensor) const;
  const rank_address& address_of(rank_id rank) const;
  std::vector<rank_address> group_members() const; ///< By tensor rank, this one included.
  std::set<std::string> group_wires() const;       ///< What its reductions go over.
  void report_loaded(std::uint64_t load_us);

  // rank_moves.cpp
  void remember_state();
  bool takes_back_state(const compute::partition_record& record, std::size_t pages);
  std::optional<boundary_log> take_back_rows(const compute::partition_record& record,
                                             std::size_t pages);
  rank_id own_number(const epoch_plan& plan) const;
  bool leaves() const; ///< Is of the last plan only.
  result<void> begin_moves();
  std::chrono::nanoseconds patience_for(std::size_t positions) const;
  result<void> send_state();
  bool state_is_here() const;
  void settle_state();
  void report_state();
  void forget_moves();

  void attend(transport::transport& wires);
  void take_new_wires(result<transport::transport*> made);
  byte_string own_address() const;
  byte_string own_segment() const;

  result<live_slot*> find_slot(const step_plan& plan, const step_entry& entry);
  result<compute::batch> make_batch(const step_plan& plan);
  result<compute::buffer> read_kept(const step_plan& plan);
  void keep(const compute::buffer& payload);
  void tell_request(const step_plan& plan, const step_entry& entry) const;
  result<void> take_rules(live_slot& slot, const step_entry& entry) const;

  bool publishes() const { return partition_->record().owns_output && assignment_.tensor == 0; }

  token_choice choose(const step_entry& entry,
                      std::span<float> logits,
                      const compute::token_candidates& candidates,
                      bool finite);
  void begin(const compute::partition_input& input);
  result<compute::buffer> from_wire(const partition_input& message, const compute::buffer& tensor);
  result<compute::buffer> to_wire(const compute::buffer& hidden) const;
  void publish_boundary(const compute::boundary_output& output);
  void send_boundary(const step_plan& plan, compute::buffer payload);
  void end_replay();
  void send_choices(compute::final_output& output);
  void take_frame(transport::peer_key from, transport::frame&& received);
  void count_wires();
  void count_pass();
  void count_send(clock::time_point begin, std::uint64_t bytes);
  void report_trace();
  void note_frame(message_kind kind, transport::peer_key to, std::uint64_t amount);

  /// nullptr where nothing goes wrong on purpose.
  compute::fault_injector* faults() const { return setup.faults->injector(); }

  self_pointer self_ = nullptr;
  rank_phase phase_ = rank_phase::empty;
  epoch_id epoch_{};

  std::unique_ptr<compute::device> device_;
  tensor_group group_;
  std::optional<transport::shared_segment> segment_; ///< Of the group, where this rank made it.
  std::unique_ptr<compute::partition> partition_;
  compute::partition_state state_;
  std::optional<boundary_log> kept_; ///< Where there is a next stage, and rows are kept for it.
  std::uint64_t life_ = 0;           ///< rank_loaded::life
  shard_assignment assignment_;

  std::optional<former_state> former_; ///< Of the last plan, until the next one serves.
  std::optional<state_outbox> outbox_;
  std::optional<clock::time_point> send_until_; ///< What the outbox holds then is not worth it.
  std::optional<state_intake> intake_;

  epoch_plan plan_;
  std::vector<transport::peer_key> awaited_; ///< Neighbours that have not proved themselves yet.
  clock::time_point join_until_;
  std::optional<rank_actor> next_;
  std::optional<conductor_actor> conductor_;

  std::map<slot_id, live_slot> slots_; ///< Outlive an epoch, as the state that they tell of does.
  step_plan step_;                     ///< Of the current pass.
  clock::time_point pass_begin_;
  clock::time_point pass_end_ = clock::now();
  std::uint64_t compute_ns_ = 0; ///< Of the current pass, collectives included.
  tracer trace_;
  std::uint64_t collective_ns_before_ = 0; ///< The board's, when the pass began.
};

} // namespace troupe::actors
