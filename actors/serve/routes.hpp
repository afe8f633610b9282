#pragma once
// What there is at which path.

#include <string_view>

namespace troupe::actors::serve {

struct route {
  std::string_view path;   ///< Of a model's own page: that of all of them.
  bool takes_post = false; ///< Else GET and HEAD.
};

/// Null: there is nothing.
const route* find_route(std::string_view path);

} // namespace troupe::actors::serve
