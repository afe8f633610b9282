#include "transport/collectives/endpoint_collective.hpp"

#include "config/topology.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

namespace troupe::transport {

namespace {

/// From here on a vector is added in parts: each member then sends and receives it twice, however
/// many members there are, instead of once for each other member.
constexpr std::size_t in_parts_elements = 16 << 10;

/// For so long a waiting member looks for what comes, then it sleeps until its wires wake it.
/// Whoever looks on keeps his core from the kernel, which has to bring what comes over TCP.
constexpr std::chrono::microseconds looking{1000};
constexpr std::chrono::microseconds looking_over_tcp{20};
constexpr int longest_sleep_ms = 1; ///< Then it asks whether the epoch is over.

constexpr unsigned phase_shift = 8;
constexpr unsigned parts_shift = 32;

operation called_in(const frame_header& header) {
  operation called;
  called.kind = static_cast<operation_kind>(header.flags & 0xff);
  called.type = header.type;
  called.number = header.tag;
  called.epoch = header.epoch;
  called.elements = number(header.step);
  called.parts = header.flags >> parts_shift;
  return called;
}

std::string text_of(const frame& told) {
  return {reinterpret_cast<const char*>(told.payload.data()), told.payload.size()};
}

} // namespace

result<std::unique_ptr<endpoint_collective>>
endpoint_collective::make(transport& wires,
                          std::vector<peer_key> members,
                          std::size_t rank,
                          const collective_options& options) {
  if (rank >= members.size())
    return error{errc::invalid_argument,
                 fmt::format("member {} of a group of {}", rank, members.size())};
  return std::unique_ptr<endpoint_collective>(
    new endpoint_collective(wires, std::move(members), rank, options));
}

endpoint_collective::endpoint_collective(transport& wires,
                                         std::vector<peer_key> members,
                                         std::size_t rank,
                                         const collective_options& options)
  : wires_(wires), members_(std::move(members)), rank_(rank), options_(options),
    arrived_(members_.size()), current_(members_.size()), looking_(looking) {
  for (const auto member : members_)
    if (const auto link = wires_.link(member); link && link->transports.starts_with("tcp"))
      looking_ = looking_over_tcp;
}

// -- what the owner hands in ---------------------------------------------------------------------

bool endpoint_collective::accept(peer_key from, frame&& received) {
  const auto member = std::find(members_.begin(), members_.end(), from);
  if (member == members_.end())
    return false;
  const auto in = static_cast<phase>((received.header.flags >> phase_shift) & 0xff);
  if (in == phase::failed) {
    const auto code = static_cast<errc>(received.header.flags & 0xff);
    if (!poison_)
      poison_ =
        error{code > errc::unsupported ? errc::contract_violation : code, text_of(received)};
    return true;
  }
  arrived_[static_cast<std::size_t>(member - members_.begin())].push_back(std::move(received));
  return true;
}

void endpoint_collective::member_down(peer_key peer, const error& why) {
  const auto member = std::find(members_.begin(), members_.end(), peer);
  if (member != members_.end())
    abort({errc::unreachable,
           fmt::format("{} of the group is down: {}",
                       name_member(options_, static_cast<std::size_t>(member - members_.begin())),
                       why.what)});
}

void endpoint_collective::abort(const error& why) {
  if (poison_)
    return;
  poison_ = why;
  auto text = std::make_shared<std::string>(why.what.substr(0, 480));
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == rank_)
      continue;
    frame told;
    told.header.kind = static_cast<std::uint8_t>(frame_kind::collective);
    told.header.tag = number_;
    told.header.flags = static_cast<std::uint64_t>(why.code)
                        | static_cast<std::uint64_t>(phase::failed) << phase_shift;
    told.payload =
      compute::buffer::adopt(reinterpret_cast<std::byte*>(text->data()), text->size(), text);
    // Who cannot be told any more finds out by its own deadline.
    [[maybe_unused]] const auto sent = wires_.send(members_[m], std::move(told));
  }
}

result<void> endpoint_collective::fail(error why) {
  abort(why);
  return *poison_;
}

// -- one phase -----------------------------------------------------------------------------------

result<void> endpoint_collective::begin(const operation& called) {
  due_ = std::chrono::steady_clock::now() + options_.deadline;
  if (poison_)
    return with_context(fmt::format("no {}, the group has failed", describe(called)), *poison_);
  return {};
}

result<compute::buffer> endpoint_collective::copy_out(std::span<const float> values) {
  auto copied = buffers_.take(values.size_bytes());
  if (copied && !values.empty())
    std::memcpy(copied->data(), values.data(), values.size_bytes());
  return copied;
}

result<void> endpoint_collective::post(std::size_t member,
                                       const operation& called,
                                       phase in,
                                       compute::buffer payload) {
  frame leaving;
  leaving.header.kind = static_cast<std::uint8_t>(frame_kind::collective);
  leaving.header.type = called.type;
  leaving.header.tag = called.number;
  leaving.header.step = static_cast<step_id>(called.elements);
  leaving.header.flags = static_cast<std::uint64_t>(called.kind)
                         | static_cast<std::uint64_t>(in) << phase_shift
                         | called.parts << parts_shift;
  leaving.payload = std::move(payload);
  while (true) {
    auto sent = wires_.send(members_[member], leaving);
    if (sent)
      return {};
    if (sent.error().code != errc::overloaded || std::chrono::steady_clock::now() > due_)
      return fail(with_context(
        fmt::format("{} to {}", describe(called), name_member(options_, member)), sent.error()));
    wires_.progress();
    if (poison_)
      return *poison_;
  }
}

/// Waits for the next frame of each other member. Those of phase `values` say what their members
/// call; all are here before they are compared, so that each member comes to the same end.
result<void> endpoint_collective::collect(const operation& called, phase in) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == rank_)
      continue;
    std::optional<std::chrono::steady_clock::time_point> until;
    for (std::uint64_t round = 1; arrived_[m].empty(); ++round) {
      if (poison_)
        return *poison_;
      if (wires_.progress() != 0)
        continue;
      if (options_.progress)
        options_.progress();
      if (options_.interrupted)
        if (auto why = options_.interrupted())
          return fail(*std::move(why));
      if (round % 16 != 0 && !until)
        continue;
      const auto now = std::chrono::steady_clock::now();
      if (now > due_)
        return fail({errc::timed_out,
                     fmt::format("{} has not come to {} after {} ms",
                                 name_member(options_, m),
                                 describe(called),
                                 options_.deadline.count())});
      if (!until)
        until = now + looking_;
      if (now < *until)
        sched_yield();
      else
        sleep();
    }
    current_[m] = std::move(arrived_[m].front());
    arrived_[m].pop_front();
  }
  if (poison_)
    return *poison_;
  return in == phase::values ? check_calls(called) : check_phase(called, in);
}

void endpoint_collective::sleep() {
  if (!wires_.arm())
    return;
  pollfd wires{wires_.event_fd(), POLLIN, 0};
  ::poll(&wires, 1, longest_sleep_ms);
}

/// A member that agreed on the operation and then sends something else is out of order for good.
result<void> endpoint_collective::check_phase(const operation& called, phase in) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const auto& header = current_[m].header;
    const auto found = (header.flags >> phase_shift) & 0xff;
    if (m != rank_ && (called_in(header) != called || found != static_cast<std::uint64_t>(in)))
      return fail({errc::contract_violation,
                   fmt::format("{} sends phase {} of {} where phase {} of {} is due",
                               name_member(options_, m),
                               found,
                               describe(called_in(header)),
                               static_cast<unsigned>(in),
                               describe(called))});
  }
  return {};
}

result<void> endpoint_collective::check_calls(const operation& called) {
  std::vector<operation> by_member(members_.size());
  for (std::size_t m = 0; m < members_.size(); ++m)
    by_member[m] = m == rank_ ? called : called_in(current_[m].header);
  if (auto differs = find_mismatch(by_member, options_))
    return fail(*differs);
  return {};
}

/// The payload of a member's frame, which must hold `elements` values.
result<std::span<const float>> endpoint_collective::part_of(std::size_t member,
                                                            std::size_t elements,
                                                            const operation& called) const {
  const auto& payload = current_[member].payload;
  if (payload.size() != elements * sizeof(float))
    return error{errc::contract_violation,
                 fmt::format("{} sends {} bytes for its part of {}, it has {}",
                             name_member(options_, member),
                             payload.size(),
                             describe(called),
                             elements * sizeof(float))};
  if (elements == 0)
    return std::span<const float>{};
  return std::span<const float>{reinterpret_cast<const float*>(payload.data()), elements};
}

/// The same payload to each other member, and what they send.
result<void>
endpoint_collective::exchange(const operation& called, phase in, const compute::buffer& payload) {
  for (std::size_t m = 0; m < members_.size(); ++m)
    if (m != rank_)
      if (auto posted = post(m, called, in, payload); !posted)
        return posted;
  return collect(called, in);
}

// -- operations ----------------------------------------------------------------------------------

/// sum = the members' parts, in member order; `mine` and `sum` may be the same.
result<void> endpoint_collective::add(std::span<const float> mine,
                                      const operation& called,
                                      std::span<float> sum) {
  std::vector<const float*> parts(members_.size());
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == rank_) {
      parts[m] = mine.data();
      continue;
    }
    auto part = part_of(m, mine.size(), called);
    if (!part)
      return fail(part.error());
    parts[m] = part->data();
  }
  constexpr std::size_t block = 1024; // The sum stays in the first-level cache.
  float total[block];
  for (std::size_t at = 0; at < sum.size(); at += block) {
    const auto count = std::min(block, sum.size() - at);
    std::copy_n(parts[0] + at, count, total);
    for (std::size_t m = 1; m < parts.size(); ++m)
      for (std::size_t i = 0; i < count; ++i)
        total[i] += parts[m][at + i];
    std::copy_n(total, count, sum.data() + at);
  }
  return {};
}

result<void> endpoint_collective::reduce_directly(const operation& called,
                                                  std::span<float> values) {
  auto copied = copy_out(values);
  if (!copied)
    return fail(copied.error());
  if (auto here = exchange(called, phase::values, *copied); !here)
    return here;
  return add(values, called, values);
}

result<void> endpoint_collective::reduce_in_parts(const operation& called,
                                                  std::span<float> values) {
  const auto part = [&](std::size_t m) {
    const auto place = split_part(values.size(), members_.size(), m);
    return values.subspan(place.begin, place.size());
  };
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == rank_)
      continue;
    auto copied = copy_out(part(m));
    if (!copied)
      return fail(copied.error());
    if (auto posted = post(m, called, phase::values, std::move(*copied)); !posted)
      return posted;
  }
  if (auto here = collect(called, phase::values); !here)
    return here;
  if (auto added = add(part(rank_), called, part(rank_)); !added)
    return added;
  auto sums = copy_out(part(rank_));
  if (!sums)
    return fail(sums.error());
  if (auto here = exchange(called, phase::sums, *sums); !here)
    return here;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == rank_)
      continue;
    auto theirs = part_of(m, part(m).size(), called);
    if (!theirs)
      return fail(theirs.error());
    std::copy(theirs->begin(), theirs->end(), part(m).begin());
  }
  return {};
}

result<void> endpoint_collective::all_reduce_sum(std::span<float> values) {
  const operation called{
    operation_kind::all_reduce, dtype::f32, ++number_, options_.epoch, values.size(), 0};
  if (auto begun = begin(called); !begun)
    return begun;
  return values.size() >= in_parts_elements && members_.size() > 1
           ? reduce_in_parts(called, values)
           : reduce_directly(called, values);
}

result<void> endpoint_collective::all_gather(std::span<const float> mine,
                                             std::span<const std::size_t> counts,
                                             std::span<float> all) {
  auto called = gather_operation(++number_, options_.epoch, counts);
  called.parts &= 0xffff'ffff; // As much as the header holds.
  check(counts.size() == members_.size(), "a gather names the count of each member");
  check(mine.size() == counts[rank_], "a member brings as many elements as it says");
  check(all.size() == called.elements, "a gather has room for all parts");
  if (auto begun = begin(called); !begun)
    return begun;
  auto copied = copy_out(mine);
  if (!copied)
    return fail(copied.error());
  if (auto here = exchange(called, phase::values, *copied); !here)
    return here;
  std::size_t begin_of_part = 0;
  for (std::size_t m = 0; m < members_.size(); begin_of_part += counts[m], ++m) {
    const auto own =
      copied->size() == 0
        ? std::span<const float>{}
        : std::span<const float>{reinterpret_cast<const float*>(copied->data()), mine.size()};
    auto theirs = m == rank_ ? result<std::span<const float>>(own) : part_of(m, counts[m], called);
    if (!theirs)
      return fail(theirs.error());
    std::copy(theirs->begin(), theirs->end(), all.begin() + static_cast<long>(begin_of_part));
  }
  return {};
}

result<void> endpoint_collective::barrier() {
  const operation called{operation_kind::barrier, dtype::f32, ++number_, options_.epoch, 0, 0};
  if (auto begun = begin(called); !begun)
    return begun;
  return exchange(called, phase::values, {});
}

} // namespace troupe::transport
