#include "actors/rank/group.hpp"

#include "compute/faults/faulty_collective.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace troupe::actors {

namespace {

class unjoined_collective final : public compute::collective {
public:
  unjoined_collective(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}

  std::size_t rank() const noexcept override { return rank_; }

  std::size_t size() const noexcept override { return size_; }

  result<void> all_reduce_sum(std::span<float>) override { return refusal(); }

  result<void>
  all_gather(std::span<const float>, std::span<const std::size_t>, std::span<float>) override {
    return refusal();
  }

  result<void> barrier() override { return refusal(); }

private:
  static error refusal() { return {errc::not_now, "the rank has not joined its tensor group yet"}; }

  std::size_t rank_;
  std::size_t size_;
};

/// Shows when a rank waits for its group, adds up that time, and notes what it does there.
class timed_collective final : public compute::collective {
public:
  timed_collective(compute::collective& inner,
                   rank_board& board,
                   recorder& last_deeds,
                   tracer& trace)
    : inner_(inner), board_(board), last_deeds_(last_deeds), trace_(trace) {}

  std::size_t rank() const noexcept override { return inner_.rank(); }

  std::size_t size() const noexcept override { return inner_.size(); }

  result<void> all_reduce_sum(std::span<float> values) override {
    return timed(recorded::reduce_begun, recorded::reduce_ended, values.size(), [&] {
      return inner_.all_reduce_sum(values);
    });
  }

  result<void> all_gather(std::span<const float> mine,
                          std::span<const std::size_t> counts,
                          std::span<float> all) override {
    return timed(recorded::gather_begun, recorded::gather_ended, all.size(), [&] {
      return inner_.all_gather(mine, counts, all);
    });
  }

  result<void> barrier() override {
    return timed(
      recorded::barrier_begun, recorded::barrier_ended, 0, [&] { return inner_.barrier(); });
  }

private:
  template <class Call>
  result<void> timed(recorded begun, recorded ended, std::uint64_t elements, Call call) {
    using clock = std::chrono::steady_clock;
    last_deeds_.note({begun, 0, 0, ++number_, elements});
    const auto begin = clock::now();
    board_.in_collective.store(true, std::memory_order_relaxed);
    auto outcome = call();
    board_.in_collective.store(false, std::memory_order_relaxed);
    const auto end = clock::now();
    trace_.add(trace_kind::collective, begin, end, elements);
    const auto span = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin);
    last_deeds_.note({outcome ? ended : recorded::reduction_failed, 0, 0, number_, elements});
    rank_board::add(board_.collective_ns, static_cast<std::uint64_t>(span.count()));
    rank_board::add(board_.collectives, 1);
    rank_board::add(board_.collective_bytes, elements * sizeof(float));
    return outcome;
  }

  compute::collective& inner_;
  rank_board& board_;
  recorder& last_deeds_;
  tracer& trace_;
  std::uint64_t number_ = 0;
};

} // namespace

bool share_memory(const std::vector<rank_address>& members) {
  return std::all_of(members.begin(), members.end(), [&](const rank_address& member) {
    return member.host == members.front().host;
  });
}

tensor_group tensor_group::unjoined(std::size_t rank, std::size_t size) {
  tensor_group made;
  made.operations_ = std::make_unique<unjoined_collective>(rank, size);
  return made;
}

result<tensor_group> tensor_group::join(const group_place& place,
                                        transport::transport& wires,
                                        rank_board& board,
                                        recorder& last_deeds,
                                        tracer& trace,
                                        compute::fault_injector* faults) {
  tensor_group made;
  if (place.members.size() == 1) {
    made.operations_ = std::make_unique<compute::solo_collective>();
    return made;
  }
  transport::collective_options options;
  options.epoch = place.epoch;
  options.deadline = place.deadline;
  options.interrupted = [&board, epoch = number(place.epoch)]() -> std::optional<error> {
    if (board.fenced.load(std::memory_order_relaxed) < epoch)
      return std::nullopt;
    return error{errc::cancelled, fmt::format("epoch {} is over", epoch)};
  };
  options.first_rank = number(place.members.front().rank);
  if (share_memory(place.members)) {
    // What this rank has posted must go on moving while it waits for its peers.
    options.progress = [&wires] { wires.progress(); };
    const auto& described = place.members.front().segment;
    auto segment = transport::shared_segment::open(std::as_bytes(std::span{described}));
    if (!segment)
      return with_context("the tensor group's shared memory", segment.error());
    auto joined = transport::shared_memory_collective::make(
      std::move(*segment), place.tensor_rank, place.members.size(), options);
    if (!joined)
      return joined.error();
    made.over_memory_ = joined->get();
    made.wire_ = std::move(*joined);
  } else {
    std::vector<transport::peer_key> keys;
    for (const auto& member : place.members)
      keys.push_back(number(member.rank));
    auto joined = transport::endpoint_collective::make(wires, keys, place.tensor_rank, options);
    if (!joined)
      return joined.error();
    made.over_frames_ = joined->get();
    made.wire_ = std::move(*joined);
  }
  auto* whole = made.wire_.get();
  if (faults != nullptr) {
    made.faulty_ = compute::make_faulty_collective(*whole, *faults);
    whole = made.faulty_.get();
  }
  made.operations_ = std::make_unique<timed_collective>(*whole, board, last_deeds, trace);
  return made;
}

void tensor_group::accept(transport::peer_key from, transport::frame&& received) {
  if (over_frames_ != nullptr)
    over_frames_->accept(from, std::move(received));
}

void tensor_group::abort(const error& why) {
  if (over_frames_ != nullptr)
    over_frames_->abort(why);
  if (over_memory_ != nullptr)
    over_memory_->abort(why);
}

void tensor_group::member_down(transport::peer_key peer, const error& why) {
  if (over_frames_ != nullptr)
    over_frames_->member_down(peer, why);
}

result<std::optional<transport::shared_segment>> make_group_segment(std::size_t size) {
  using made = std::optional<transport::shared_segment>;
  if (size < 2)
    return made{};
  auto segment =
    transport::shared_segment::create(transport::shared_memory_collective::segment_bytes(size));
  if (!segment)
    return with_context("the tensor group's shared memory", segment.error());
  return made{std::move(*segment)};
}

} // namespace troupe::actors
