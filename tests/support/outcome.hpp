#pragma once
// What a run of a program said, and how it ended.

#include "tests/support/process.hpp"

#include <string>
#include <vector>

namespace troupe::tests {

struct outcome {
  int code = -1;                  ///< -1: it did not end in time, or a signal ended it.
  std::vector<std::string> lines; ///< Standard output and error together.

  std::string all() const;

  bool mentions(const std::string& words) const { return all().find(words) != std::string::npos; }
};

/// Listens to a child, which gets no input, until it ends.
outcome outcome_of(test::process child, int seconds);

} // namespace troupe::tests
