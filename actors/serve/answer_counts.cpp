#include "actors/serve/answer_counts.hpp"

#include "actors/serve/routes.hpp"

namespace troupe::actors::serve {

/// What the server has not is one, so that strangers make no names.
void answer_counts::add(std::string_view path, unsigned status) {
  const auto* known = find_route(path);
  const std::lock_guard lock(mutex_);
  ++counts_[{std::string(known != nullptr ? known->path : "other"), status}];
}

answer_counts::table answer_counts::read() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

} // namespace troupe::actors::serve
