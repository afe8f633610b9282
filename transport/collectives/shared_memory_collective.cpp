#include "transport/collectives/shared_memory_collective.hpp"

#include "config/topology.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace troupe::transport {

namespace {

constexpr std::size_t cache_line = 64;

/// A slot holds the values of one member in one step; longer vectors take several steps. Two slots
/// of each of four members fit in the second-level caches of their cores.
constexpr std::size_t slot_elements = std::size_t{64} << 10;
constexpr std::size_t slot_bytes = slot_elements * sizeof(float);

/// From here on each member adds a part and reads the other parts, instead of adding all by itself.
constexpr std::size_t together_elements = 16 << 10;

/// How long a waiting member spins before it gives its core away, and then before it sleeps.
constexpr int spins = 2000;
constexpr int crowded_spins = 20;
constexpr int yields = 5000;
constexpr timespec nap{0, 50'000};

/// What a member shows in one step. The flag comes last: who sees it sees the rest.
struct alignas(cache_line) notice {
  operation called;
  std::atomic<std::uint64_t> flag; ///< The step, counted from 1.
};

struct alignas(cache_line) counter {
  std::atomic<std::uint64_t> flag;
};

static_assert(sizeof(notice) == cache_line);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void copy(const float* from, float* to, std::size_t count) {
  if (count != 0 && from != to)
    std::memcpy(to, from, count * sizeof(float));
}

std::size_t round_up(std::size_t bytes) {
  return (bytes + cache_line - 1) / cache_line * cache_line;
}

} // namespace

/// The head of the segment; all zeros is a group that has not begun.
struct shared_memory_collective::board {
  enum : std::uint32_t { running, ending, ended };

  alignas(cache_line) std::atomic<std::uint64_t> members; ///< Written by the first who comes.
  alignas(cache_line) std::atomic<std::uint32_t> end;
  errc reason;
  char text[480];

  // After the board: notice[2][members], counter[members], slots [2][members], sums [2].
  notice* notices() { return reinterpret_cast<notice*>(this + 1); }

  notice& of(std::uint64_t step, std::size_t member) {
    return notices()[(step & 1) * members.load(std::memory_order_relaxed) + member];
  }

  counter& added(std::size_t member) {
    const auto count = members.load(std::memory_order_relaxed);
    return reinterpret_cast<counter*>(notices() + 2 * count)[member];
  }

  float* slots() {
    const auto count = members.load(std::memory_order_relaxed);
    return reinterpret_cast<float*>(reinterpret_cast<counter*>(notices() + 2 * count) + count);
  }

  static std::size_t bytes(std::size_t count) {
    return round_up(sizeof(board)) + count * (2 * sizeof(notice) + sizeof(counter))
           + 2 * (count + 1) * slot_bytes;
  }
};

std::size_t shared_memory_collective::segment_bytes(std::size_t members) {
  return board::bytes(members);
}

result<std::unique_ptr<shared_memory_collective>>
shared_memory_collective::make(shared_segment segment,
                               std::size_t rank,
                               std::size_t members,
                               const collective_options& options) {
  if (rank >= members)
    return error{errc::invalid_argument, fmt::format("member {} of a group of {}", rank, members)};
  if (segment.bytes().size() < segment_bytes(members))
    return error{errc::invalid_argument,
                 fmt::format("segment of {} bytes for a group of {}, it needs {}",
                             segment.bytes().size(),
                             members,
                             segment_bytes(members))};
  std::unique_ptr<shared_memory_collective> made(
    new shared_memory_collective(std::move(segment), rank, members, options));
  std::uint64_t found = 0;
  if (!made->board_->members.compare_exchange_strong(found, members) && found != members)
    return error{errc::mismatch,
                 fmt::format("segment of a group of {} members, not of {}", found, members)};
  return made;
}

shared_memory_collective::shared_memory_collective(shared_segment segment,
                                                   std::size_t rank,
                                                   std::size_t members,
                                                   const collective_options& options)
  : segment_(std::move(segment)), rank_(rank), members_(members), options_(options),
    crowded_(members > std::thread::hardware_concurrency()),
    board_(reinterpret_cast<board*>(segment_.bytes().data())), calls_(members) {}

float* shared_memory_collective::slot(std::size_t member) const {
  return board_->slots() + ((step_ & 1) * members_ + member) * slot_elements;
}

float* shared_memory_collective::sums() const {
  return board_->slots() + (2 * members_ + (step_ & 1)) * slot_elements;
}

// -- failure -------------------------------------------------------------------------------------

void shared_memory_collective::abort(const error& why) {
  std::uint32_t expected = board::running;
  if (!board_->end.compare_exchange_strong(expected, board::ending))
    return;
  const auto length = std::min(why.what.size(), sizeof board_->text - 1);
  std::memcpy(board_->text, why.what.data(), length);
  board_->text[length] = '\0';
  board_->reason = why.code;
  board_->end.store(board::ended, std::memory_order_release);
}

result<void> shared_memory_collective::fail(error why) {
  poison_ = std::move(why);
  abort(*poison_);
  return *poison_;
}

result<void> shared_memory_collective::begin(const operation& called) {
  due_ = std::chrono::steady_clock::now() + options_.deadline;
  if (poison_)
    return with_context(fmt::format("no {}, the group has failed", describe(called)), *poison_);
  return {};
}

template <class Ready>
result<void> shared_memory_collective::wait(const operation& called, Ready ready) {
  const int limit = crowded_ ? crowded_spins : spins;
  for (int round = 0; !ready(); ++round) {
    if (round < limit && round % 64 != 63) {
      relax();
      continue;
    }
    if (board_->end.load(std::memory_order_acquire) == board::ended)
      return fail({board_->reason, board_->text});
    if (options_.progress)
      options_.progress();
    if (options_.interrupted)
      if (auto why = options_.interrupted())
        return fail(*std::move(why));
    if (round < limit)
      continue;
    if (std::chrono::steady_clock::now() > due_)
      return error{errc::timed_out,
                   fmt::format("{} after {} ms", describe(called), options_.deadline.count())};
    if (round < limit + yields)
      sched_yield();
    else
      nanosleep(&nap, nullptr);
  }
  return {};
}

// -- steps ---------------------------------------------------------------------------------------

/// Shows the call and waits until every member has shown its own.
result<void> shared_memory_collective::meet(const operation& called) {
  auto& mine = board_->of(step_, rank_);
  mine.called = called;
  mine.flag.store(step_ + 1, std::memory_order_release);
  for (std::size_t m = 0; m < members_; ++m) {
    auto& theirs = board_->of(step_, m);
    auto here = wait(called, [&] { return theirs.flag.load(std::memory_order_acquire) > step_; });
    if (!here && poison_)
      return here;
    if (!here)
      return fail(
        {errc::timed_out,
         fmt::format("{} has not come to {}", name_member(options_, m), here.error().what)});
    calls_[m] = theirs.called;
  }
  if (auto differs = find_mismatch(calls_, options_))
    return fail(*differs);
  // A member that comes late finds the values of those who gave up waiting for it.
  if (board_->end.load(std::memory_order_acquire) == board::ended)
    return fail({board_->reason, board_->text});
  return {};
}

/// Waits until every member has added its part of this step.
result<void> shared_memory_collective::meet_again(const operation& called) {
  board_->added(rank_).flag.store(step_ + 1, std::memory_order_release);
  for (std::size_t m = 0; m < members_; ++m) {
    auto& theirs = board_->added(m).flag;
    auto here = wait(called, [&] { return theirs.load(std::memory_order_acquire) > step_; });
    if (!here && poison_)
      return here;
    if (!here)
      return fail({errc::timed_out,
                   fmt::format("{} has not added its part of {}",
                               name_member(options_, m),
                               here.error().what)});
  }
  return {};
}

/// Adds elements [begin, end) of all slots, in member order whoever does it.
void shared_memory_collective::reduce(std::size_t begin, std::size_t end, float* out) const {
  constexpr std::size_t block = 2048; // The sum stays in the first-level cache.
  for (std::size_t at = begin; at < end; at += block) {
    const auto count = std::min(block, end - at);
    float* __restrict to = out + at;
    const float* first = slot(0) + at;
    const float* second = slot(1) + at;
    for (std::size_t i = 0; i < count; ++i)
      to[i] = first[i] + second[i];
    for (std::size_t m = 2; m < members_; ++m) {
      const float* next = slot(m) + at;
      for (std::size_t i = 0; i < count; ++i)
        to[i] += next[i];
    }
  }
}

result<void> shared_memory_collective::reduce_together(const operation& called,
                                                       std::span<float> values) {
  const auto part = split_part(values.size(), members_, rank_);
  reduce(part.begin, part.end, sums());
  if (auto added = meet_again(called); !added)
    return added;
  copy(sums(), values.data(), values.size());
  return {};
}

// -- operations ----------------------------------------------------------------------------------

result<void> shared_memory_collective::all_reduce_sum(std::span<float> values) {
  const operation called{
    operation_kind::all_reduce, dtype::f32, ++number_, options_.epoch, values.size(), 0};
  if (auto begun = begin(called); !begun)
    return begun;
  std::size_t at = 0;
  do { // A vector without elements takes a step too: the calls are compared.
    const auto chunk = values.subspan(at, std::min(slot_elements, values.size() - at));
    copy(chunk.data(), slot(rank_), chunk.size());
    if (auto met = meet(called); !met)
      return met;
    if (members_ > 2 && chunk.size() >= together_elements) {
      if (auto added = reduce_together(called, chunk); !added)
        return added;
    } else if (members_ > 1) {
      reduce(0, chunk.size(), chunk.data());
    }
    finish_step();
    at += chunk.size();
  } while (at < values.size());
  return {};
}

result<void> shared_memory_collective::all_gather(std::span<const float> mine,
                                                  std::span<const std::size_t> counts,
                                                  std::span<float> all) {
  const auto called = gather_operation(++number_, options_.epoch, counts);
  check(counts.size() == members_, "a gather names the count of each member");
  check(mine.size() == counts[rank_], "a member brings as many elements as it says");
  check(all.size() == called.elements, "a gather has room for all parts");
  if (auto begun = begin(called); !begun)
    return begun;
  const auto longest = *std::max_element(counts.begin(), counts.end());
  std::size_t at = 0;
  do {
    const auto piece = [at](std::size_t count) {
      return count <= at ? 0 : std::min(slot_elements, count - at);
    };
    copy(mine.data() + std::min(at, mine.size()), slot(rank_), piece(mine.size()));
    if (auto met = meet(called); !met)
      return met;
    std::size_t begin_of_part = 0;
    for (std::size_t m = 0; m < members_; ++m) {
      copy(slot(m), all.data() + begin_of_part + at, piece(counts[m]));
      begin_of_part += counts[m];
    }
    finish_step();
    at += slot_elements;
  } while (at < longest);
  return {};
}

result<void> shared_memory_collective::barrier() {
  const operation called{operation_kind::barrier, dtype::f32, ++number_, options_.epoch, 0, 0};
  if (auto begun = begin(called); !begun)
    return begun;
  auto met = meet(called);
  if (met)
    finish_step();
  return met;
}

} // namespace troupe::transport
