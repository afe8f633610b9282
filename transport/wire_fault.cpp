#include "transport/wire_fault.hpp"

#include <cstring>
#include <utility>

namespace troupe::transport {

namespace {

/// A payload is shared with its sender: damage is done to a copy.
compute::buffer copy_of(const compute::buffer& payload, std::size_t bytes) {
  auto copied = compute::buffer::allocate(bytes);
  if (!copied)
    return {};
  std::memcpy(copied->data(), payload.data(), bytes);
  return std::move(*copied);
}

void flip_bit(frame& which, std::uint64_t seed) {
  if (which.payload.size() == 0) {
    which.header.tag ^= 1ull << (seed % 64);
    return;
  }
  which.payload = copy_of(which.payload, which.payload.size());
  if (which.payload.size() > 0)
    which.payload.data()[seed / 8 % which.payload.size()] ^= std::byte{1} << (seed % 8);
}

} // namespace

std::vector<frame> wire_disturbance::pass(frame leaving) {
  std::vector<frame> out;
  switch (std::exchange(next_, wire_fault::none)) {
  case wire_fault::lose: break;
  case wire_fault::repeat:
    out.push_back(leaving);
    out.push_back(std::move(leaving));
    break;
  case wire_fault::swap: held_ = std::move(leaving); return out;
  case wire_fault::shorten:
    if (leaving.payload.size() > 1) {
      leaving.payload = copy_of(leaving.payload, leaving.payload.size() / 2);
      out.push_back(std::move(leaving));
    }
    break;
  case wire_fault::flip_bit:
    flip_bit(leaving, seed_);
    out.push_back(std::move(leaving));
    break;
  case wire_fault::none: out.push_back(std::move(leaving)); break;
  }
  if (held_)
    out.push_back(*std::exchange(held_, std::nullopt));
  return out;
}

} // namespace troupe::transport
