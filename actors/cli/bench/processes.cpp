#include "actors/cli/bench/processes.hpp"

#include "actors/cli/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_period{2};
constexpr std::chrono::milliseconds most_of_block{100};

/// Onto the rank-th of the cores that this process may use.
void take_core(unsigned rank) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0)
    return;
  auto left = rank % static_cast<unsigned>(CPU_COUNT(&allowed));
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0)
      continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    ::sched_setaffinity(0, sizeof only, &only);
    return;
  }
}

/// The children of one measure; those that still run are killed and reaped at the end.
class children {
public:
  ~children() {
    for (const auto child : running_)
      ::kill(child, SIGKILL);
    for (const auto child : running_)
      ::waitpid(child, nullptr, 0);
  }

  void add(pid_t child) { running_.push_back(child); }

  bool empty() const { return running_.empty(); }

  /// Reaps those that have ended; the status of one that did not end well, or 0.
  int look() {
    int bad = 0;
    std::erase_if(running_, [&](pid_t child) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) != child)
        return false;
      bad = bad != 0 ? bad : status;
      return true;
    });
    return bad;
  }

private:
  std::vector<pid_t> running_;
};

/// The board in memory that children share.
class shared_board {
public:
  static result<shared_board> make() {
    void* memory = ::mmap(
      nullptr, sizeof(process_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return error{errc::out_of_memory, "no memory that processes of a measure share"};
    return shared_board(new (memory) process_board);
  }

  shared_board(shared_board&& other) noexcept : board_(std::exchange(other.board_, nullptr)) {}

  ~shared_board() {
    if (board_ != nullptr)
      ::munmap(board_, sizeof(process_board));
  }

  process_board& operator*() { return *board_; }

private:
  explicit shared_board(process_board* board) : board_(board) {}

  process_board* board_;
};

error describe_end(int status, const process_board& board) {
  if (WIFSIGNALED(status))
    return {errc::compute_error,
            fmt::format("a process of the measure ended by signal {}", WTERMSIG(status))};
  return board.failure();
}

} // namespace

void process_board::meet(unsigned processes) {
  const unsigned round = arrived_.fetch_add(1) / processes;
  while (arrived_.load() < (round + 1) * processes) {
    if (failed_.load())
      ::_exit(0); // The other one has said why.
    ::sched_yield();
  }
}

void process_board::put_address(unsigned rank,
                                std::size_t which,
                                std::span<const std::byte> bytes) {
  auto& place = places_[rank][which];
  check(bytes.size() <= place.data.size(), "an address fits on the board");
  place.bytes = bytes.size();
  std::copy(bytes.begin(), bytes.end(), place.data.begin());
}

std::span<const std::byte> process_board::address(unsigned rank, std::size_t which) const {
  const auto& place = places_[rank][which];
  return {place.data.data(), place.bytes};
}

void process_board::add(std::size_t kind, double value) {
  auto& count = counts_[kind];
  if (count < most_values)
    values_[kind][count++] = value;
}

std::vector<double> process_board::values(std::size_t kind) const {
  const auto& all = values_[kind];
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(counts_[kind])};
}

void process_board::fail(const error& why) {
  if (failed_.load())
    return;
  code_ = why.code;
  std::strncpy(what_.data(), why.what.c_str(), what_.size() - 1);
  failed_.store(true);
}

error process_board::failure() const {
  return {code_, failed_.load() ? what_.data() : "a process of the measure failed"};
}

turn_block::turn_block(measuring_process& here, std::uint32_t turns)
  : here_(here), number_(++here.blocks), turns_(turns), due_(clock::now() + most_of_block) {}

void turn_block::begin_turn() {
  ++turn_;
  if (here_.rank == 0 && (turn_ >= turns_ || clock::now() > due_))
    here_.board.end_block(number_, turn_);
}

result<measured_values>
run_processes(unsigned processes,
              std::chrono::seconds deadline,
              const std::function<result<void>(measuring_process& here)>& body) {
  auto shared = shared_board::make();
  if (!shared)
    return shared.error();
  auto& board = **shared;
  children started;
  for (unsigned rank = 0; rank < processes; ++rank) {
    const pid_t child = ::fork();
    if (child < 0)
      return error{errc::io_error,
                   fmt::format("no process for a measure: {}", std::strerror(errno))};
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      take_core(rank);
      measuring_process here{rank, board};
      const auto done = body(here);
      if (!done)
        board.fail(done.error());
      ::_exit(done ? 0 : 1);
    }
    started.add(child);
  }
  const auto due = clock::now() + deadline;
  while (!started.empty()) {
    if (const int status = started.look(); status != 0)
      return describe_end(status, board);
    if (clock::now() > due)
      return error{errc::timed_out,
                   fmt::format("a measure of {} processes did not end within {} s",
                               processes,
                               deadline.count())};
    if (!started.empty() && wait_for_stop_signal(look_period) != 0)
      return error{errc::cancelled, "stopped"};
  }
  measured_values all;
  for (std::size_t kind = 0; kind < process_board::most_kinds; ++kind)
    all.push_back(board.values(kind));
  return all;
}

} // namespace troupe::cli
