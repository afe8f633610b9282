#include "actors/wires/reactor.hpp"

#include "config/log.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sched.h>

#include <utility>

namespace troupe::actors {

namespace {

/// How often a loop looks for work before it lets others have the core for a turn, which takes as
/// long as some looks do: a message would wait for that.
constexpr unsigned looks_a_turn = 16;

void watch(int epoll_fd, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  check(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll takes a descriptor of ours");
}

/// Lends the reactor's thread to an actor: spawned actors and plain sends go to the framework.
class reactor_unit : public caf::execution_unit {
public:
  explicit reactor_unit(caf::actor_system* system) : caf::execution_unit(system) {}

  void exec_later(caf::resumable* job) override { system().scheduler().enqueue(job); }
};

} // namespace

reactor::reactor(const reactor_options& options) : options_(options) {
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  check(wake_fd_ >= 0 && epoll_fd_ >= 0, "the system has descriptors left for a reactor");
  watch(epoll_fd_, wake_fd_);
}

reactor::~reactor() {
  for (auto* job : due_)
    caf::intrusive_ptr_release(job);
  close(epoll_fd_);
  close(wake_fd_);
}

void reactor::post(caf::resumable* job) {
  {
    const std::lock_guard guard{mutex_};
    due_.push_back(job);
    any_due_.store(true, std::memory_order_release);
  }
  if (sleeping_.load(std::memory_order_seq_cst)) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof one);
  }
}

void reactor::stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof one);
}

std::size_t reactor::run_jobs() {
  if (!any_due_.load(std::memory_order_acquire))
    return 0;
  {
    const std::lock_guard guard{mutex_};
    running_.swap(due_);
    any_due_.store(false, std::memory_order_relaxed);
  }
  const auto count = running_.size();
  for (auto* job : running_) {
    // One message at a time: between two of them the wires get their turn.
    switch (job->resume(unit_.get(), 1)) {
    case caf::resumable::resume_later: {
      const std::lock_guard guard{mutex_};
      due_.push_back(job);
      any_due_.store(true, std::memory_order_relaxed);
      break;
    }
    default: caf::intrusive_ptr_release(job); break;
    }
  }
  running_.clear();
  return count;
}

result<transport::transport*> reactor::open(wire_maker make) {
  make_ = std::move(make);
  return make_wires();
}

result<transport::transport*> reactor::make_wires() {
  auto made = make_();
  if (!made)
    return made.error();
  wires_ = std::move(*made);
  watch(epoll_fd_, wires_->event_fd());
  return wires_.get();
}

void reactor::close_wires(std::chrono::milliseconds deadline) {
  if (!wires_)
    return;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, wires_->event_fd(), nullptr);
  if (auto closed = wires_->close(deadline); !closed)
    log::debug("reactor {}", closed.error().what);
  wires_.reset();
}

void reactor::sleep() {
  sleeping_.store(true, std::memory_order_seq_cst);
  bool due = false;
  {
    const std::lock_guard guard{mutex_};
    due = !due_.empty();
  }
  if (!due && !stopped_.load(std::memory_order_seq_cst) && (!wires_ || wires_->arm())) {
    epoll_event event{};
    const auto timeout_ms = static_cast<int>(options_.tick.count());
    if (epoll_wait(epoll_fd_, &event, 1, timeout_ms) > 0 && event.data.fd == wake_fd_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const auto taken = read(wake_fd_, &count, sizeof count);
    }
  }
  sleeping_.store(false, std::memory_order_seq_cst);
}

void reactor::run(caf::actor_system& system) {
  using clock = std::chrono::steady_clock;
  unit_ = std::make_unique<reactor_unit>(&system);
  auto last_work = clock::now();
  auto last_look = last_work;
  unsigned looks = 0; // In vain.
  while (!stopped_.load(std::memory_order_relaxed)) {
    if (renewal_) {
      close_wires(options_.renewal_deadline);
      const auto taker = std::exchange(renewal_, nullptr);
      taker(make_wires());
    }
    const auto moved = wires_ ? wires_->progress() : 0;
    const auto ran = run_jobs();
    const auto now = clock::now();
    if (look_ && !stopped_.load(std::memory_order_relaxed) && !renewal_
        && (moved > 0 || now - last_look >= options_.tick)) {
      last_look = now;
      look_();
    }
    if (moved + ran > 0) {
      last_work = now;
      continue;
    }
    if (now - last_work < options_.spin) {
      if (++looks % looks_a_turn == 0)
        sched_yield();
      continue;
    }
    sleep();
  }
  while (run_jobs() > 0)
    if (wires_)
      wires_->progress();
  close_wires(options_.close_deadline);
}

} // namespace troupe::actors
