#pragma once
// How far the head's steady clock is from this node's, reckoned from beats and their answers. A
// beat's answer was written between the beat's leaving and the answer's coming: the one that took
// the shortest time says the most (Cristian's algorithm).

#include <cstdint>
#include <deque>

namespace troupe::actors {

class clock_offset {
public:
  /// By this node's clock a beat left and its answer came; by the head's it was heard.
  void hear(std::uint64_t sent_ns, std::uint64_t heard_ns, std::uint64_t answered_ns) {
    if (answered_ns < sent_ns)
      return;
    last_.push_back(
      {signed_of(heard_ns) - signed_of(answered_ns), signed_of(heard_ns) - signed_of(sent_ns)});
    if (last_.size() > window)
      last_.pop_front();
  }

  /// Whether anything was heard; before, nothing is known.
  bool known() const { return !last_.empty(); }

  /// To be added to a time of this node. Nothing where the difference may be none: processes of one
  /// host have one clock.
  std::int64_t offset_ns() const {
    const auto found = best();
    return found.least <= 0 && found.most >= 0 ? 0 : found.least + (found.most - found.least) / 2;
  }

  /// The offset may be wrong by so much.
  std::uint64_t uncertain_ns() const {
    const auto found = best();
    return static_cast<std::uint64_t>(found.most - found.least) / 2;
  }

private:
  /// Clocks drift: what was long ago says little. Some ten seconds of beats.
  static constexpr std::size_t window = 100;

  struct bounds {
    std::int64_t least = 0, most = 0;
  };

  static std::int64_t signed_of(std::uint64_t ns) { return static_cast<std::int64_t>(ns); }

  bounds best() const {
    bounds found;
    bool any = false;
    for (const auto& one : last_)
      if (!any || one.most - one.least < found.most - found.least) {
        found = one;
        any = true;
      }
    return found;
  }

  std::deque<bounds> last_;
};

} // namespace troupe::actors
