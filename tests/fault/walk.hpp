#pragma once
// A walk of faults: eight clients ask without a pause, and by a seed something goes wrong about
// once a second: processes are killed and stopped, frames lost and damaged, memory refused.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace troupe::tests {

struct walk_result {
  std::string shape;
  std::map<std::string, std::size_t> faults; ///< By kind.
  std::uint64_t epochs = 0;
  std::size_t processes = 0; ///< Nodes that were started.
  std::size_t answered = 0;
  std::size_t disturbed = 0; ///< Answered, and an epoch ended meanwhile.
  std::size_t spoilt = 0;    ///< Failed by a value that is not a finite number.
  std::size_t refused = 0;
  std::size_t lost = 0;
  std::size_t wrong = 0;
  std::string leftovers;

  std::size_t all_faults() const;
};

/// Ends the test where something is left behind. One thread; starts others.
walk_result walk_of_faults(unsigned seed, std::chrono::seconds time);

} // namespace troupe::tests
