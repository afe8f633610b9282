#pragma once
// What the conductor knows. One door changes its phase (step). Requests and their answers are in
// conductor_requests.cpp, epochs and steps in conductor.cpp.

#include "actors/conductor/answer.hpp"
#include "actors/conductor/conductor.hpp"
#include "actors/conductor/conductor_phases.hpp"
#include "actors/rank/tracer.hpp"
#include "config/log.hpp"

#include <map>
#include <optional>
#include <vector>

namespace troupe::actors {

class conductor_state {
public:
  static inline const char* name = "conductor";
  using self_pointer = conductor_actor::stateful_pointer<conductor_state>;

  /// The only door; see rank_state::step.
  template <class Act>
  void step(conductor_input input, std::optional<epoch_id> epoch, Act act) {
    if (epoch && *epoch != epoch_)
      return;
    const auto& cell = conductor_phases.at(phase_, input);
    if (cell.what != verdict::go) {
      if (cell.what == verdict::refuse)
        log::warn("conductor refuses {} while {}",
                  conductor_phases.name(input),
                  conductor_phases.name(phase_));
      return;
    }
    if (phase_ != cell.next)
      log::trace("conductor epoch {}: {} --{}--> {}",
                 number(epoch_),
                 conductor_phases.name(phase_),
                 conductor_phases.name(input),
                 conductor_phases.name(cell.next));
    const bool changes = phase_ != cell.next;
    phase_ = cell.next;
    if (auto* injector = faults(); injector && changes)
      injector->enter_phase(conductor_phases.name(phase_));
    act();
  }

  void start(self_pointer actor, conductor_setup given);
  void attend(transport::transport& wires);
  void take_new_wires(result<transport::transport*> made);
  void join(const epoch_plan& plan);
  void take(const state_held& report);
  void serve();
  caf::result<request_id> take(const generate_request& wish, const caf::strong_actor_ptr& client);
  caf::result<request_id> take(const stream_attach& which, const caf::strong_actor_ptr& client);
  void cancel(request_id id, std::string why);
  void client_left(const caf::actor_addr& who);
  void commit(const step_output& output);
  void lose_peer(const peer_down& message);
  void hear(const fence& over);
  void end_epoch(const std::string& reason);
  void stop(const node_stop& order);
  void look();

  /// Something is to go wrong, in whatever phase.
  void take(const fault_order& order);

  /// The next steps are to be noted, in whatever phase.
  void take(const trace_order& order);

private:
  void meet(const epoch_plan& plan);
  void take_shape(const epoch_plan& plan, const held_slots& held);
  void note_lives(const epoch_plan& plan);

  /// nullptr where nothing goes wrong on purpose.
  compute::fault_injector* faults() const { return setup_.faults->injector(); }

  void send_steps();
  void send(const next_step& step);
  void note(const step_plan& plan);
  void send_releases();
  void publish(const committed_token& given);
  void finish(request_id id, finish_reason reason, errc code = {}, std::string what = {});
  void pause(const std::string& why);
  void fail_all(errc code, const std::string& why);
  void give_up(conductor_input input, const error& why);
  void leave(const std::string& why);
  void show();
  void report_trace();
  void note(const result<void>& written);
  void write_down_in_time();
  void write_down();
  void restore();
  void take_up(const journal_entry& entry);
  result<request_id> find_stream(const stream_attach& which, const client_actor& client);
  result<sequence_wish> make_wish(request_id id, const generate_request& wish) const;
  result<answer>
  make_answer(request_id id, const generate_request& wish, client_actor client) const;
  result<request_id> submit(const generate_request& wish, const caf::strong_actor_ptr& client);

  using clock = std::chrono::steady_clock;

  self_pointer self_ = nullptr;
  conductor_setup setup_;
  conductor_phase phase_ = conductor_phase::waiting;
  std::string not_ready_ = "the cluster is starting";
  bool recovers_ = false; ///< Has served, and misses no node: the next epoch is a moment away.
  epoch_id epoch_{};
  std::unique_ptr<schedule> schedule_;
  std::map<request_id, answer> answers_;
  std::uint64_t next_request_ = 1;
  std::vector<std::vector<rank_actor>> stages_; ///< Ranks of the epoch; the first get the tokens.
  std::map<rank_id, std::uint64_t> lives_;      ///< Whose state the schedule counts on.
  std::vector<transport::peer_key> awaited_;
  std::optional<epoch_plan> restaged_; ///< While its ranks say what they hold.
  std::map<rank_id, std::vector<held_slot>> reports_;
  std::vector<committed_token> unwritten_; ///< Neither in the journal nor told to anybody yet.
  clock::time_point written_at_{};
  clock::time_point write_due_{};                   ///< When a look is due that was asked for.
  std::map<step_id, clock::time_point> step_times_; ///< Of the steps in flight.
  tracer trace_;
  clock::time_point paused_since_{}; ///< While there is no epoch.
  clock::time_point until_{};        ///< Of joining or draining.
};

} // namespace troupe::actors
