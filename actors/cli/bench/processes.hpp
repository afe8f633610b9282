#pragma once
// Processes of this program that measure something together: forked, each on a core of its own
// where there are enough, with a board in shared memory. Call it while no other thread runs.

#include "config/result.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace troupe::cli {

/// What the processes of one measure share. Each hands in where it can be reached, and rank 0 what
/// it measured.
class process_board {
public:
  static constexpr std::size_t most_processes = 4;
  static constexpr std::size_t most_addresses = 2; ///< Of one process.
  static constexpr std::size_t most_kinds = 16;
  static constexpr std::size_t most_values = 256; ///< Of one kind; later ones are left out.

  /// Waits for all processes of the measure. A process that failed ends the others.
  void meet(unsigned processes);

  /// A meeting at which nobody waits idly: says that this process is through, and asks for all.
  void leave() { left_.fetch_add(1); }

  bool all_left(unsigned processes) const { return left_.load() >= processes || failed_.load(); }

  void put_address(unsigned rank, std::size_t which, std::span<const std::byte> bytes);
  std::span<const std::byte> address(unsigned rank, std::size_t which) const;

  /// One more value of a kind, by rank 0.
  void add(std::size_t kind, double value);

  std::vector<double> values(std::size_t kind) const;

  /// Rank 0: the block of this number ends with that turn.
  void end_block(std::uint32_t block, std::uint32_t turn) {
    last_turn_.store(std::uint64_t{block} << 32 | turn);
  }

  bool is_last(std::uint32_t block, std::uint32_t turn) const {
    return last_turn_.load() == (std::uint64_t{block} << 32 | turn);
  }

  void fail(const error& why);
  error failure() const;

private:
  struct address_place {
    std::size_t bytes = 0;
    std::array<std::byte, 1024> data;
  };

  std::atomic<unsigned> arrived_{0};
  std::atomic<unsigned> left_{0};
  std::atomic<std::uint64_t> last_turn_{0}; ///< Above: its block.
  std::array<std::array<address_place, most_addresses>, most_processes> places_;
  std::array<std::size_t, most_kinds> counts_{};
  std::array<std::array<double, most_values>, most_kinds> values_;
  std::atomic<bool> failed_{false};
  errc code_ = errc::compute_error;
  std::array<char, 512> what_{};
};

/// One process of a measure.
struct measuring_process {
  unsigned rank = 0;
  process_board& board;
  std::uint32_t blocks = 0; ///< That it began; the same number in all processes.
};

/// A block of turns that all processes take together. Rank 0 ends it early where it takes long: on
/// a machine with more work than cores a turn may wait for a core again and again.
class turn_block {
public:
  turn_block(measuring_process& here, std::uint32_t turns);

  /// Before each turn.
  void begin_turn();

  /// After each turn: whether that was the last one.
  bool over() const { return here_.board.is_last(number_, turn_); }

  /// Whether the turn counts: those of the first tenth do not.
  bool counts() const { return turn_ > turns_ / 10 || over(); }

private:
  measuring_process& here_;
  const std::uint32_t number_;
  const std::uint32_t turns_;
  std::uint32_t turn_ = 0; ///< That have begun.
  const std::chrono::steady_clock::time_point due_;
};

/// Values of each kind.
using measured_values = std::vector<std::vector<double>>;

/// Runs the body in `processes` processes at once. Errors: what a body returned, timed_out
/// after the deadline, compute_error where a process died, cancelled by a stop signal; all
/// processes have ended then.
result<measured_values>
run_processes(unsigned processes,
              std::chrono::seconds deadline,
              const std::function<result<void>(measuring_process& here)>& body);

} // namespace troupe::cli
