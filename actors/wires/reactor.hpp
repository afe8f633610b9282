#pragma once
// A reactor: one thread that drives one transport and runs the actor that lives on it. A rank is
// such a thread; the conductor is another. No lock and no hop between threads lies on a token's
// road: the wire's handler puts a message into the actor's mailbox, and the same thread runs it.

#include "actors/caf.hpp"
#include "transport/transport.hpp"

#include <caf/detail/sync_request_bouncer.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::actors {

struct reactor_options {
  /// How long to look for work before sleeping. 0 where threads outnumber cores: a spinning thread
  /// would keep the one it waits for from running.
  std::chrono::microseconds spin{0};
  /// How often on_tick runs, and the longest sleep.
  std::chrono::milliseconds tick{100};
  /// How long wires may take to say goodbye.
  std::chrono::milliseconds close_deadline{1000};
  /// The same for wires that are replaced after a fault: whoever is there knows that already, and
  /// who is frozen will not answer.
  std::chrono::milliseconds renewal_deadline{20};
};

class reactor {
public:
  /// Makes the transport that the reactor drives; runs on its thread.
  using wire_maker = std::function<result<std::unique_ptr<transport::transport>>()>;

  explicit reactor(const reactor_options& options);
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// Any thread: runs `job` (an actor with mail) on the reactor's thread. Takes over one reference.
  void post(caf::resumable* job);

  /// Any thread: makes run() return after the jobs that are due.
  void stop();

  /// Owner thread: called about every `tick`, and after each round in which the wires moved.
  void on_round(std::function<void()> look) { look_ = std::move(look); }

  /// Owner thread, from within an actor: replaces the transport before anything else is done, and
  /// hands the new one over. After a peer died, wires through shared memory may be stuck for all
  /// peers; a new transport, with a new address, is not. Whoever holds on to the old one lets go
  /// before the handler that asks for this returns.
  using wire_taker = std::function<void(result<transport::transport*>)>;

  void renew_wires(wire_taker taker) { renewal_ = std::move(taker); }

  /// Owner thread: makes the transport. Call it once before run().
  result<transport::transport*> open(wire_maker make);

  /// Owner thread: the loop. Returns after stop(), with the transport closed.
  void run(caf::actor_system& system);

private:
  std::size_t run_jobs();
  result<transport::transport*> make_wires();
  void close_wires(std::chrono::milliseconds deadline);
  void sleep();

  reactor_options options_;
  int wake_fd_ = -1;
  int epoll_fd_ = -1;
  std::mutex mutex_;
  std::vector<caf::resumable*> due_; ///< Guarded by mutex_.
  std::atomic<bool> any_due_{false}; ///< Spares the loop the lock when there is nothing.
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> stopped_{false};
  std::vector<caf::resumable*> running_;
  /// What the actors here send through, also from outside of their messages: it lives as long as
  /// the loop.
  std::unique_ptr<caf::execution_unit> unit_;
  std::function<void()> look_;
  wire_maker make_;
  std::unique_ptr<transport::transport> wires_;
  wire_taker renewal_;
};

/// Any actor class, executed on a reactor instead of the framework's pool.
template <class Base>
class on_reactor : public Base {
public:
  template <class... Ts>
  on_reactor(caf::actor_config& config, reactor& home, Ts&&... arguments)
    : Base(config, std::forward<Ts>(arguments)...), home_(home) {}

  void launch(caf::execution_unit*, bool lazy, bool hide) override {
    if (!hide)
      this->register_at_system();
    if (lazy && this->mailbox().try_block())
      return;
    caf::intrusive_ptr_add_ref(this->ctrl());
    home_.post(this);
  }

  using Base::enqueue;

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) override {
    const auto id = element->mid;
    auto from = element->sender;
    switch (this->mailbox().push_back(std::move(element))) {
    case caf::intrusive::inbox_result::unblocked_reader:
      caf::intrusive_ptr_add_ref(this->ctrl());
      home_.post(this);
      break;
    case caf::intrusive::inbox_result::queue_closed:
      if (id.is_request()) {
        caf::detail::sync_request_bouncer bounce{caf::make_error(caf::sec::request_receiver_down)};
        bounce(from, id);
      }
      break;
    case caf::intrusive::inbox_result::success: break;
    }
  }

private:
  reactor& home_;
};

} // namespace troupe::actors
