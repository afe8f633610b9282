#include "actors/control/client.hpp"

#include "actors/control/answer_gathering.hpp"
#include "actors/control/run_folder.hpp"
#include "actors/control/system.hpp"
#include "actors/faults.hpp"
#include "actors/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace troupe::actors {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How often a wait looks at the caller's wish to cancel.
constexpr milliseconds cancel_period{50};

// How often a head that went away is looked for.
constexpr milliseconds reconnect_period{100};

// From the actor's thread to the caller's.
class event_queue {
public:
  void push(client_event what) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(what));
    }
    heard_.notify_one();
  }

  std::optional<client_event> pop(clock::time_point give_up) {
    std::unique_lock lock(mutex_);
    if (!heard_.wait_until(lock, give_up, [&] { return !events_.empty(); }))
      return std::nullopt;
    auto first = std::move(events_.front());
    events_.pop_front();
    return first;
  }

private:
  std::mutex mutex_;
  std::condition_variable heard_;
  std::deque<client_event> events_;
};

// Asks the head and passes on what it says. Its requests carry no timeouts: the caller's thread has
// the deadlines, and a head that goes away is noticed by the monitor, which requests are not.
caf::behavior listen(caf::event_based_actor* self,
                     const std::shared_ptr<event_queue>& heard,
                     gateway_actor door) {
  self->monitor(door);
  self->set_down_handler([=](caf::down_msg&) { heard->push(head_down{}); });
  return {
    [=](std::uint64_t ask, generate_request& wish) {
      self
        ->request(
          door, caf::infinite, std::move(wish), caf::actor_cast<caf::strong_actor_ptr>(self))
        .then(
          [=](request_id id) {
            heard->push(request_accepted{ask, id});
          },
          [=](caf::error& why) {
            heard->push(request_refused{ask, from_caf(self->system(), why)});
          });
    },
    [=](std::uint64_t ask, status_query question) {
      self->request(door, caf::infinite, question)
        .then(
          [=](cluster_status& known) {
            heard->push(status_heard{ask, std::move(known)});
          },
          [=](caf::error& why) {
            heard->push(request_refused{ask, from_caf(self->system(), why)});
          });
    },
    [=](std::uint64_t ask, node_drain& which) {
      self->request(door, caf::infinite, std::move(which))
        .then([=] { heard->push(order_taken{ask}); },
              [=](caf::error& why) {
                heard->push(request_refused{ask, from_caf(self->system(), why)});
              });
    },
    [=](std::uint64_t ask, stream_attach which) {
      self->request(door, caf::infinite, which, caf::actor_cast<caf::strong_actor_ptr>(self))
        .then([](request_id) {},
              [=](caf::error& why) {
                heard->push(request_refused{ask, from_caf(self->system(), why)});
              });
    },
    [=](std::uint64_t ask, fault_order& order) {
      self->request(door, caf::infinite, std::move(order))
        .then(
          [=](fault_receipt& receipt) {
            heard->push(fault_accepted{ask, std::move(receipt.what)});
          },
          [=](caf::error& why) {
            heard->push(request_refused{ask, from_caf(self->system(), why)});
          });
    },
    [=](std::uint64_t ask, trace_order order) {
      self->request(door, caf::infinite, order)
        .then(
          [=](trace_report& report) {
            heard->push(trace_heard{ask, std::move(report)});
          },
          [=](caf::error& why) {
            heard->push(request_refused{ask, from_caf(self->system(), why)});
          });
    },
    [=](request_cancel which) { self->send(door, which); },
    [=](cluster_stop& wish) { self->send(door, std::move(wish)); },
    [=](text_piece& piece) { heard->push(std::move(piece)); },
    [=](request_end& end) { heard->push(std::move(end)); },
  };
}

generate_request to_message(const text_request& wish) {
  generate_request made;
  made.prompt = wish.prompt;
  made.tokens = wish.tokens;
  made.sampling = to_choice(wish.sampling);
  made.max_tokens = wish.max_tokens;
  made.stop = wish.stop;
  made.ignore_end = wish.ignore_end;
  made.with_digests = wish.with_digests;
  made.with_logprobs = wish.with_logprobs;
  made.top_logprobs = wish.top_logprobs;
  for (const auto& [token, bias] : wish.bias)
    made.bias.push_back({token, bias});
  made.schema = wish.schema;
  return made;
}

/// The way to a head.
struct connection {
  std::unique_ptr<control_plane> control;
  gateway_actor door;
  std::string where; ///< For people.
};

result<connection> connect_to_head(const cluster_settings& settings,
                                   const std::filesystem::path& folder,
                                   milliseconds deadline) {
  const auto& head = settings.nodes[settings.head_index()];
  auto port = static_cast<std::uint16_t>(head.port);
  if (port == 0) {
    const auto known = read_control(folder);
    if (!known)
      return known.error().code == errc::not_found ? error{errc::unreachable, known.error().what}
                                                   : known.error();
    port = known->port;
  }
  auto control = control_plane::start(settings);
  if (!control)
    return control.error();
  auto door = (*control)->connect(head.advertise, port, deadline);
  if (!door)
    return with_context(fmt::format("head {}", head.name), door.error());
  return connection{std::move(*control), *door, fmt::format("{} port {}", head.advertise, port)};
}

class remote_client final : public cluster_client {
public:
  remote_client(connection found, const cluster_settings& settings, std::filesystem::path folder)
    : settings_(settings), folder_(std::move(folder)), deadlines_(settings.deadlines) {
    use(std::move(found));
  }

  ~remote_client() override { caf::anon_send_exit(listener_, caf::exit_reason::user_shutdown); }

  result<cluster_status> status(milliseconds deadline) override {
    auto heard = ask<status_heard>(status_query{}, deadline);
    return heard ? result{std::move(heard->status)} : heard.error();
  }

  result<std::string> inject(const fault_settings& wanted, milliseconds deadline) override {
    auto heard = ask<fault_accepted>(to_order(wanted), deadline);
    return heard ? result{std::move(heard->what)} : heard.error();
  }

  result<void> drain(const std::string& node, milliseconds deadline) override {
    auto heard = ask<order_taken>(node_drain{node}, deadline);
    return heard ? result<void>{} : heard.error();
  }

  result<trace_report>
  trace(std::uint32_t steps, milliseconds patience, milliseconds deadline) override {
    const trace_order order{0, steps, static_cast<std::uint32_t>(patience.count())};
    auto heard = ask<trace_heard>(order, patience + deadline);
    return heard ? result{std::move(heard->report)} : heard.error();
  }

  result<std::vector<text_answer>> generate(const std::vector<text_request>& requests,
                                            const text_handler& on_text,
                                            const std::atomic<bool>& cancel) override;

  result<void> stop(const std::string& reason, milliseconds deadline) override {
    if (gone_)
      return *gone_;
    caf::anon_send(listener_, cluster_stop{reason});
    const auto give_up = clock::now() + deadline;
    while (auto what = heard_->pop(give_up)) {
      if (note_down(*what))
        return {};
    }
    return error{
      errc::timed_out,
      fmt::format("the cluster at {} did not stop within {} ms", where_, deadline.count())};
  }

private:
  void use(connection found) {
    if (listener_)
      caf::anon_send_exit(listener_, caf::exit_reason::user_shutdown);
    heard_ = std::make_shared<event_queue>();
    control_ = std::move(found.control);
    where_ = std::move(found.where);
    listener_ = control_->system().spawn(listen, heard_, found.door);
    gone_.reset();
  }

  /// Where the cluster keeps a journal, its head comes back and knows the requests.
  bool find_head_again(const std::atomic<bool>& cancel) {
    const auto give_up = clock::now() + milliseconds(deadlines_.join_ms);
    while (!settings_.recovery.journal.empty() && !cancel && clock::now() < give_up) {
      auto found = connect_to_head(settings_, folder_, milliseconds(deadlines_.connect_ms));
      if (found) {
        use(std::move(*found));
        return true;
      }
      std::this_thread::sleep_for(reconnect_period);
    }
    return false;
  }

  /// The head is gone: streams go on where they were if it comes back, and end otherwise.
  void go_on_with(answer_gathering& answers, const std::atomic<bool>& cancel) {
    const auto why = *gone_;
    answers.end_unaccepted(why);
    if (answers.open() == 0)
      return;
    if (!find_head_again(cancel))
      return answers.end_all(why, "error");
    for (const auto& stream : answers.streams())
      caf::anon_send(listener_, stream.ask, stream_attach{stream.request, stream.tokens});
  }

  // Puts a question and waits for its answer, or for the error in its place.
  template <class Answer, class Question>
  result<Answer> ask(Question question, milliseconds deadline) {
    if (gone_)
      return *gone_;
    const auto number = next_ask_++;
    caf::anon_send(listener_, number, std::move(question));
    const auto give_up = clock::now() + deadline;
    while (auto what = heard_->pop(give_up)) {
      if (auto* answer = std::get_if<Answer>(&*what); answer != nullptr && answer->ask == number)
        return std::move(*answer);
      if (auto* no = std::get_if<request_refused>(&*what); no != nullptr && no->ask == number)
        return no->why;
      if (note_down(*what))
        return *gone_;
    }
    return error{
      errc::timed_out,
      fmt::format("the head at {} did not answer within {} ms", where_, deadline.count())};
  }

  bool note_down(const client_event& what) {
    if (std::holds_alternative<head_down>(what))
      gone_ = error{errc::unreachable, fmt::format("the head at {} went away", where_)};
    return gone_.has_value();
  }

  cluster_settings settings_;
  std::filesystem::path folder_;
  std::unique_ptr<control_plane> control_;
  std::string where_;
  deadline_settings deadlines_;
  std::shared_ptr<event_queue> heard_;
  caf::actor listener_;
  std::uint64_t next_ask_ = 1;
  std::optional<error> gone_; // Set once the head went away.
};

result<std::vector<text_answer>> remote_client::generate(const std::vector<text_request>& requests,
                                                         const text_handler& on_text,
                                                         const std::atomic<bool>& cancel) {
  if (gone_)
    return *gone_;
  answer_gathering answers(requests.size(), next_ask_, on_text);
  for (const auto& request : requests)
    caf::anon_send(listener_, next_ask_++, to_message(request));
  // The cluster has the deadlines of requests; here it only matters that it still says something.
  const auto patience =
    milliseconds(deadlines_.step_ms * 2 + deadlines_.join_ms + deadlines_.load_ms);
  auto last_word = clock::now();
  std::optional<clock::time_point> cancelled_at;
  while (answers.open() > 0) {
    auto what = heard_->pop(clock::now() + cancel_period);
    if (what) {
      last_word = clock::now();
      if (note_down(*what))
        go_on_with(answers, cancel);
      else
        answers.hear(*what);
    }
    if (cancel && (!cancelled_at || !what)) {
      // Again and again: a request may be accepted after the first round, and once more is fine.
      cancelled_at = cancelled_at.value_or(clock::now());
      for (const auto request : answers.running())
        caf::anon_send(listener_, request_cancel{request});
    }
    if (cancelled_at && clock::now() - *cancelled_at > milliseconds(deadlines_.status_ms))
      answers.end_all({errc::cancelled, "withdrawn"}, "cancelled");
    if (clock::now() - last_word > patience)
      answers.end_all({errc::timed_out,
                       fmt::format("the head at {} said nothing about {} requests for {} s",
                                   where_,
                                   answers.open(),
                                   patience.count() / 1000)},
                      "error");
  }
  return answers.take();
}

} // namespace

result<std::unique_ptr<cluster_client>> cluster_client::connect(const cluster_settings& settings,
                                                                const std::filesystem::path& folder,
                                                                milliseconds deadline) {
  auto found = connect_to_head(settings, folder, deadline);
  if (!found)
    return found.error();
  return std::unique_ptr<cluster_client>(new remote_client(std::move(*found), settings, folder));
}

} // namespace troupe::actors
