#include "transport/collectives/operation.hpp"

#include "transport/frame.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::transport {

std::string_view to_string(operation_kind kind) noexcept {
  switch (kind) {
  case operation_kind::barrier: return "barrier";
  case operation_kind::all_reduce: return "all_reduce";
  case operation_kind::all_gather: return "all_gather";
  }
  return "unknown operation";
}

std::string describe(const operation& called) {
  auto text =
    fmt::format("{} {} of epoch {}", to_string(called.kind), called.number, number(called.epoch));
  if (called.kind != operation_kind::barrier)
    text += fmt::format(" with {} {} elements", called.elements, to_string(called.type));
  if (called.kind == operation_kind::all_gather)
    text += fmt::format(" in parts {:08x}", static_cast<std::uint32_t>(called.parts));
  return text;
}

operation
gather_operation(std::uint64_t number, epoch_id epoch, std::span<const std::size_t> counts) {
  operation made{
    operation_kind::all_gather, dtype::f32, number, epoch, 0, digest(std::as_bytes(counts))};
  made.elements = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  return made;
}

std::string name_member(const collective_options& options, std::size_t member) {
  return options.first_rank ? fmt::format("rank {}", *options.first_rank + member)
                            : fmt::format("member {}", member);
}

std::optional<error> find_mismatch(std::span<const operation> by_member,
                                   const collective_options& options) {
  for (std::size_t m = 1; m < by_member.size(); ++m)
    if (by_member[m] != by_member[0])
      return error{errc::mismatch,
                   fmt::format("{} calls {}, {} calls {}",
                               name_member(options, 0),
                               describe(by_member[0]),
                               name_member(options, m),
                               describe(by_member[m]))};
  return std::nullopt;
}

} // namespace troupe::transport
