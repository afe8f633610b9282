#pragma once
// What a rank did last: phases, steps, frames, reductions, in a ring that is written to the run
// folder when an epoch ends by a fault. A rank that is stuck writes nothing: any thread may read
// the ring while its owner goes on, and then may see the newest entry half-written.

#include "config/ids.hpp"
#include "config/result.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::actors {

enum class recorded : std::uint8_t {
  nothing,
  phase,           ///< detail: rank_phase.
  step,            ///< amount: rows.
  layer,           ///< number: which.
  frame_in,        ///< detail: kind; number: sequence; amount: payload bytes; peer.
  frame_out,       ///< The same.
  reduce_begun,    ///< number: of the group's operations; amount: elements.
  reduce_ended,    ///< The same.
  gather_begun,    ///< The same.
  gather_ended,    ///< The same.
  barrier_begun,   ///< number.
  barrier_ended,   ///< number.
  reduction_failed ///< number.
};

struct record {
  recorded what = recorded::nothing;
  std::uint8_t detail = 0;
  std::uint32_t peer = 0;
  std::uint64_t number = 0;
  std::uint64_t amount = 0;
};

class recorder {
public:
  static constexpr std::size_t capacity = 512;

  /// Owner thread. About 25 ns, most of it the clock.
  void note(const record& done) noexcept;

  /// Owner thread: what the following entries belong to.
  void set_place(epoch_id epoch, step_id step) noexcept {
    epoch_ = number(epoch);
    step_ = number(step);
  }

  /// Any thread: the entries as lines, oldest first, with times before now.
  std::string text() const;

  /// Any thread: writes `title` and text() to a file.
  result<void> write(const std::filesystem::path& file, const std::string& title) const;

private:
  using word = std::atomic<std::uint64_t>;

  /// Words, so that a reader of another thread sees old or new values, never torn ones.
  struct entry {
    word at_ns{0};
    word what{0}; ///< recorded, detail << 8, peer << 32.
    word epoch{0};
    word step{0};
    word number{0};
    word amount{0};
  };

  std::array<entry, capacity> ring_;
  word next_{0};
  std::uint64_t epoch_ = 0;
  std::uint64_t step_ = 0;
};

} // namespace troupe::actors
