#include "actors/serve/answer_counts.hpp"

#include <algorithm>
#include <array>

namespace troupe::actors::serve {

namespace {

constexpr std::array<std::string_view, 12> routes{"/",
                                                  "/events",
                                                  "/health",
                                                  "/health/live",
                                                  "/health/ready",
                                                  "/metrics",
                                                  "/plan.svg",
                                                  "/tokenize",
                                                  "/detokenize",
                                                  "/v1/chat/completions",
                                                  "/v1/completions",
                                                  "/v1/models"};

} // namespace

std::string_view route_of(std::string_view path) {
  if (path.starts_with("/v1/models/"))
    return "/v1/models";
  const auto found = std::find(routes.begin(), routes.end(), path);
  return found == routes.end() ? "other" : *found;
}

void answer_counts::add(std::string_view path, unsigned status) {
  const std::lock_guard lock(mutex_);
  ++counts_[{std::string(route_of(path)), status}];
}

answer_counts::table answer_counts::read() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

} // namespace troupe::actors::serve
