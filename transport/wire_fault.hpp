#pragma once
// What may happen to a frame between its sender's books and the wire. Real wires do this seldom, so
// that tests of the books at the other end need it done on purpose (transport/faults).

#include "transport/frame.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::transport {

enum class wire_fault : std::uint8_t {
  none,
  lose,     ///< It takes its number and never arrives.
  repeat,   ///< It arrives twice.
  swap,     ///< It arrives after the next one.
  shorten,  ///< It arrives with the first half of its payload; one without payload is lost.
  flip_bit, ///< It arrives with another bit, in its payload if it has one.
};

/// Applies faults to the frames of one link as they leave, numbered and sealed.
class wire_disturbance {
public:
  /// The next frame meets it. `seed` chooses the bit.
  void set(wire_fault how, std::uint64_t seed) {
    next_ = how;
    seed_ = seed;
  }

  /// Whether frames pass as they are; the only thing that a frame without faults pays.
  bool idle() const noexcept { return next_ == wire_fault::none && !held_; }

  /// What goes on the wire in place of `leaving`, in order.
  std::vector<frame> pass(frame leaving);

private:
  wire_fault next_ = wire_fault::none;
  std::uint64_t seed_ = 0;
  std::optional<frame> held_;
};

} // namespace troupe::transport
