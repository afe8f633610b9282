#include "actors/forecast/simulation.hpp"

#include "actors/conductor/schedule.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <queue>

namespace troupe::actors {

namespace {

enum class event_kind : std::uint8_t {
  step_arrives,   ///< At a stage: from the conductor, or as a boundary.
  stage_is_done,  ///< With the step that it works on.
  output_arrives, ///< At the conductor.
};

struct event {
  double at_s = 0;
  std::uint64_t order = 0; ///< Of two at the same time, the one that was made first comes first.
  event_kind kind = event_kind::step_arrives;
  std::size_t stage = 0;
  step_id step{};
  std::uint64_t version = 0; ///< Of the stage's work, where that was timed anew.

  bool operator>(const event& other) const {
    return at_s != other.at_s ? at_s > other.at_s : order > other.order;
  }
};

/// A step under way.
struct flight {
  step_plan plan;
  step_load load;
};

/// What a stage works on. Its hosts may get busier or idler meanwhile: `done` is the part that is
/// through at `since_s`, and the rest goes on at the pace of the time.
struct running_step {
  step_id step{};
  std::vector<core_work> work; ///< Of each rank.
  double sums_s = 0;
  double begun_s = 0;
  double done = 0;
  double since_s = 0;
  double whole_s = 0; ///< At the present pace.
};

struct stage_state {
  std::deque<step_id> waiting;
  std::optional<running_step> running;
  std::uint64_t version = 0;
  double wire_free_s = 0; ///< When what it sent last has left: messages do not overtake each other.
};

schedule_limits limits_of(const forecast_cluster& cluster, std::size_t requests) {
  const auto& plan = cluster.plan;
  schedule_limits limits;
  limits.context = plan.context;
  limits.max_sequences = plan.max_sequences;
  limits.max_queue = requests;
  limits.max_rows = plan.max_rows;
  limits.prefill_chunk = cluster.prefill_chunk;
  limits.stages = plan.sizes.pipeline;
  limits.micro_batches = cluster.micro_batches != 0 ? cluster.micro_batches : plan.sizes.pipeline;
  limits.pages = plan.pages;
  limits.keeps_boundaries = plan.keeps_boundaries;
  return limits;
}

class simulator {
public:
  simulator(const forecast_cluster& cluster,
            std::vector<simulated_request> requests,
            std::size_t streams)
    : cluster_(cluster), schedule_(limits_of(cluster, requests.size())), streams_(streams),
      stages_(cluster.plan.sizes.pipeline), busy_(cluster.hosts.size(), 0),
      stages_on_(cluster.hosts.size()) {
    made_.requests = std::move(requests);
    made_.stages.resize(stages_.size());
    for (std::size_t stage = 0; stage < stages_.size(); ++stage)
      for (const auto& rank : cluster_.ranks_of(stage)) {
        auto& sharing = stages_on_[host_of(rank)];
        if (sharing.empty() || sharing.back() != stage)
          sharing.push_back(stage);
      }
  }

  result<simulated_run> run() {
    while (submitted_ < std::min(streams_, made_.requests.size()))
      if (auto taken = submit(); !taken)
        return taken.error();
    send_steps();
    while (!events_.empty()) {
      const auto next = events_.top();
      events_.pop();
      now_ = next.at_s;
      if (auto went = handle(next); !went)
        return went.error();
    }
    check(ended_ == made_.requests.size(), "a simulation ends with its last request");
    made_.seconds = now_;
    return std::move(made_);
  }

private:
  std::size_t host_of(const rank_plan& rank) const { return cluster_.nodes[rank.node].host; }

  result<void> submit() {
    auto& one = made_.requests[submitted_];
    sequence_wish wish;
    wish.id = static_cast<request_id>(submitted_);
    wish.prompt.assign(one.prompt, 0);
    wish.max_tokens = one.answer;
    if (auto taken = schedule_.submit(std::move(wish)); !taken)
      return taken.error();
    one.submitted_s = now_;
    made_.prompt_tokens += one.prompt;
    ++submitted_;
    return {};
  }

  void post(double at_s, event_kind kind, std::size_t stage, step_id step, std::uint64_t version) {
    events_.push({at_s, order_++, kind, stage, step, version});
  }

  /// When a message that is sent now arrives, behind what the wire is taken with.
  double arrival(double& wire_free_s, const wire_time& time) const {
    wire_free_s = std::max(now_, wire_free_s) + time.transfer_s;
    return wire_free_s + time.latency_s;
  }

  void send_steps() {
    while (auto next = schedule_.plan_step(epoch_id{1})) {
      flight made{std::move(next->plan), {}};
      for (const auto& entry : made.plan.entries) {
        add_rows(made.load, entry.position, entry.count);
        if (entry.has(step_entry::wants_output))
          add_output(made.load, entry.candidates);
      }
      const auto there = arrival(wire_free_s_, message_time(cluster_, 0, made.load));
      const auto step = made.plan.step;
      ++made_.steps;
      flights_.emplace(step, std::move(made));
      post(there, event_kind::step_arrives, 0, step, 0);
    }
  }

  result<void> handle(const event& what) {
    auto& stage = stages_[what.stage];
    switch (what.kind) {
    case event_kind::step_arrives:
      stage.waiting.push_back(what.step);
      start_next(what.stage);
      return {};
    case event_kind::stage_is_done:
      if (stage.running && stage.version == what.version)
        finish(what.stage);
      return {};
    case event_kind::output_arrives: return commit(what.step);
    }
    return {};
  }

  // -- a stage ------------------------------------------------------------------------------------

  /// Seconds of the whole work with the cores that there are now.
  double pace_of(std::size_t stage, const running_step& running) const {
    const auto ranks = cluster_.ranks_of(stage);
    double slowest = 0;
    for (std::size_t t = 0; t < ranks.size(); ++t) {
      const auto host = host_of(ranks[t]);
      const auto threads = cluster_.nodes[ranks[t].node].threads;
      slowest = std::max(
        slowest, seconds(running.work[t], cluster_.hosts[host].cores, threads, busy_[host]));
    }
    return slowest + running.sums_s;
  }

  void time_anew(std::size_t stage) {
    auto& running = *stages_[stage].running;
    if (running.whole_s > 0)
      running.done += (now_ - running.since_s) / running.whole_s;
    running.since_s = now_;
    running.whole_s = pace_of(stage, running);
    const auto left = std::max(0.0, 1 - running.done) * running.whole_s;
    post(now_ + left, event_kind::stage_is_done, stage, running.step, ++stages_[stage].version);
  }

  /// Adds to (or takes from) what the hosts of a stage are busy with; those that share them go on
  /// at another pace.
  void occupy(std::size_t stage, bool starts) {
    for (const auto& rank : cluster_.ranks_of(stage)) {
      const auto threads = cluster_.nodes[rank.node].threads;
      auto& busy = busy_[host_of(rank)];
      busy = starts ? busy + threads : busy - threads;
    }
    for (std::size_t other = 0; other < stages_.size(); ++other)
      if (other != stage && stages_[other].running && shares_a_host(stage, other))
        time_anew(other);
  }

  bool shares_a_host(std::size_t one, std::size_t other) const {
    for (const auto& rank : cluster_.ranks_of(one)) {
      const auto& there = stages_on_[host_of(rank)];
      if (there.size() > 1 && std::binary_search(there.begin(), there.end(), other))
        return true;
    }
    return false;
  }

  void start_next(std::size_t number) {
    auto& stage = stages_[number];
    if (stage.running || stage.waiting.empty())
      return;
    running_step running;
    running.step = stage.waiting.front();
    stage.waiting.pop_front();
    const auto& load = flights_.at(running.step).load;
    for (const auto& rank : cluster_.ranks_of(number))
      running.work.push_back(rank_work(cluster_, rank, load));
    const auto sums = group_cost(cluster_, number, load);
    running.sums_s = sums.s;
    running.begun_s = running.since_s = now_;
    made_.stages[number].sum_bytes += sums.bytes_sent;
    stage.running = std::move(running);
    occupy(number, true);
    time_anew(number);
  }

  void finish(std::size_t number) {
    auto& stage = stages_[number];
    const auto step = stage.running->step;
    auto& use = made_.stages[number];
    use.work_s += now_ - stage.running->begun_s - stage.running->sums_s;
    use.sum_s += stage.running->sums_s;
    stage.running.reset();
    occupy(number, false);
    const auto& load = flights_.at(step).load;
    if (number + 1 < stages_.size()) {
      use.boundary_bytes += boundary_bytes(cluster_, load) * sizes().tensor;
      ++use.messages;
      const auto there = arrival(stage.wire_free_s, boundary_time(cluster_, number, load));
      post(there, event_kind::step_arrives, number + 1, step, 0);
    } else {
      const auto there = arrival(stage.wire_free_s, message_time(cluster_, number, load));
      post(there, event_kind::output_arrives, 0, step, 0);
    }
    start_next(number);
  }

  // -- the conductor ------------------------------------------------------------------------------

  result<void> commit(step_id step) {
    auto found = flights_.extract(step);
    step_output output;
    output.epoch = epoch_id{1};
    output.step = step;
    for (const auto& entry : found.mapped().plan.entries) {
      if (!entry.has(step_entry::wants_output))
        continue;
      output.choices.emplace_back();
      output.choices.back().slot = entry.slot;
    }
    const auto given = schedule_.commit(output);
    if (!given)
      return given.error();
    for (const auto& one : *given)
      if (auto taken = take(one); !taken)
        return taken;
    send_steps();
    return {};
  }

  result<void> take(const committed_token& token) {
    auto& one = made_.requests.at(number(token.id));
    if (one.first_token_s == 0)
      one.first_token_s = now_ - one.submitted_s;
    if (made_.answer_tokens++ == 0)
      made_.first_heard_s = now_;
    if (token.ended == sequence_end::none)
      return {};
    one.total_s = now_ - one.submitted_s;
    ++ended_;
    return submitted_ < made_.requests.size() ? submit() : result<void>{};
  }

  const axes& sizes() const { return cluster_.plan.sizes; }

  const forecast_cluster& cluster_;
  schedule schedule_;
  std::size_t streams_;
  std::vector<stage_state> stages_;
  std::vector<std::size_t> busy_;                   ///< Threads that work, by host.
  std::vector<std::vector<std::size_t>> stages_on_; ///< By host, ascending.
  std::map<step_id, flight> flights_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  double now_ = 0;
  double wire_free_s_ = 0; ///< The conductor's.
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
  simulated_run made_;
};

} // namespace

double simulated_run::decode_rate() const {
  const auto firsts = requests.size();
  const auto span = seconds - first_heard_s;
  return answer_tokens > firsts && span > 0 ? static_cast<double>(answer_tokens - firsts) / span
                                            : 0;
}

double simulated_run::answer_rate() const {
  return seconds > 0 ? static_cast<double>(answer_tokens) / seconds : 0;
}

double simulated_run::mean_first_token_s() const {
  double sum = 0;
  for (const auto& one : requests)
    sum += one.first_token_s;
  return requests.empty() ? 0 : sum / static_cast<double>(requests.size());
}

double simulated_run::filled_s(std::size_t count) const {
  double last = 0;
  for (std::size_t i = 0; i < std::min(count, requests.size()); ++i)
    last = std::max(last, requests[i].submitted_s + requests[i].first_token_s);
  return last;
}

double simulated_run::bubble() const {
  double busy = 0;
  for (const auto& stage : stages)
    busy += stage.work_s + stage.sum_s;
  const auto whole = seconds * static_cast<double>(stages.size());
  return whole > 0 ? std::max(0.0, 1 - busy / whole) : 0;
}

result<simulated_run> simulate(const forecast_cluster& cluster, const offered_load& load) {
  simulated_request one;
  one.prompt = load.prompt;
  one.answer = load.answer;
  std::vector<simulated_request> wanted(std::max(load.requests, std::size_t{1}), one);
  return simulate(cluster, wanted, load.streams);
}

result<simulated_run> simulate(const forecast_cluster& cluster,
                               const std::vector<simulated_request>& wanted,
                               std::size_t streams) {
  return simulator(cluster, wanted, std::max(streams, std::size_t{1})).run();
}

} // namespace troupe::actors
