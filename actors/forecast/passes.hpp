#pragma once
// Times of what is done again and again to find out how long it takes.

#include <algorithm>
#include <chrono>
#include <vector>

namespace troupe::actors {

using clock = std::chrono::steady_clock;

inline double seconds_since(clock::time_point begun) {
  return std::chrono::duration<double>(clock::now() - begun).count();
}

/// What others do on the machine meanwhile only makes passes longer: the lower quartile. At least
/// one value.
inline double quartile(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 4];
}

} // namespace troupe::actors
