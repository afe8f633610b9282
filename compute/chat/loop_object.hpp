#pragma once
// `loop`, as the body of a for loop sees it.

#include "compute/chat/run.hpp"

namespace troupe::compute::chat {

class loop_object : public object {
public:
  /// At least one item.
  explicit loop_object(value::items all) : all_(std::move(all)) {}

  bool over() const noexcept { return at_ >= all_.size(); }

  void advance() noexcept { ++at_; }

  /// The items are not needed any more.
  void end() { all_.clear(); }

  const value& item() const { return all_[at_]; }

  /// index, index0, revindex, revindex0, first, last, length, previtem, nextitem, depth, depth0.
  value attribute(std::string_view name) const override;

  /// cycle(...) and changed(...).
  std::optional<value>
  call_member(run& running, position at, std::string_view name, const call_values& with) override;

private:
  value::items all_;
  std::size_t at_ = 0;
  std::optional<value::items> last_; ///< That changed() was asked about.
};

} // namespace troupe::compute::chat
