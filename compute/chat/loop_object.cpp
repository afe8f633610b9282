#include "compute/chat/loop_object.hpp"

#include <algorithm>

namespace troupe::compute::chat {

value loop_object::attribute(std::string_view name) const {
  if (over())
    return {};
  std::size_t left = all_.size() - at_;
  if (name == "index")
    return at_ + 1;
  if (name == "index0")
    return at_;
  if (name == "revindex")
    return left;
  if (name == "revindex0")
    return left - 1;
  if (name == "first")
    return at_ == 0;
  if (name == "last")
    return left == 1;
  if (name == "length")
    return all_.size();
  if (name == "previtem")
    return at_ > 0 ? all_[at_ - 1] : value();
  if (name == "nextitem")
    return left > 1 ? all_[at_ + 1] : value();
  if (name == "depth")
    return 1;
  return name == "depth0" ? value(0) : value();
}

std::optional<value> loop_object::call_member(run& running,
                                              position at,
                                              std::string_view name,
                                              const call_values& with) {
  if (name == "cycle") {
    if (with.positional.empty())
      return running.fail(at, "loop.cycle has nothing to choose from");
    return with.positional[at_ % with.positional.size()];
  }
  if (name != "changed")
    return std::nullopt;
  bool same = last_ && last_->size() == with.positional.size()
              && std::equal(last_->begin(),
                            last_->end(),
                            with.positional.begin(),
                            [&](const value& one, const value& other) {
                              return equal(one, other, running.work());
                            });
  last_ = with.positional;
  return !same;
}

} // namespace troupe::compute::chat
