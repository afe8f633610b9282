#include "tests/support/outcome.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

namespace troupe::tests {

using std::chrono::milliseconds;

std::string outcome::all() const {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

outcome outcome_of(test::process child, int seconds) {
  using clock = std::chrono::steady_clock;
  child.finish_input();
  outcome found;
  const auto until = clock::now() + std::chrono::seconds{seconds};
  found.lines = child.hear_all(std::chrono::seconds{seconds});
  const auto left = std::chrono::duration_cast<milliseconds>(until - clock::now());
  const auto ended = child.wait(std::max(left, milliseconds{500}));
  if (ended && ended->exited)
    found.code = ended->code;
  return found;
}

} // namespace troupe::tests
