#include "actors/serve/routes.hpp"

#include <algorithm>
#include <array>

namespace troupe::actors::serve {

const route* find_route(std::string_view path) {
  constexpr bool post = true;
  static constexpr std::array<route, 12> routes{{{"/"},
                                                 {"/events"},
                                                 {"/health"},
                                                 {"/health/live"},
                                                 {"/health/ready"},
                                                 {"/metrics"},
                                                 {"/plan.svg"},
                                                 {"/v1/models"},
                                                 {"/tokenize", post},
                                                 {"/detokenize", post},
                                                 {"/v1/chat/completions", post},
                                                 {"/v1/completions", post}}};
  if (path.starts_with("/v1/models/"))
    path = "/v1/models";
  const auto* found = std::find_if(
    routes.begin(), routes.end(), [path](const route& one) { return one.path == path; });
  return found == routes.end() ? nullptr : found;
}

} // namespace troupe::actors::serve
