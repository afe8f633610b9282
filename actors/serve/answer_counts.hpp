#pragma once
// How many requests were answered, by path and status.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::actors::serve {

class answer_counts {
public:
  /// Path, "other" where there is nothing, and status; 0: the client left before the answer was
  /// complete.
  using key = std::pair<std::string, unsigned>;
  using table = std::map<key, std::uint64_t>;

  /// Any thread. `path` as it was asked for.
  void add(std::string_view path, unsigned status);

  table read() const;

private:
  mutable std::mutex mutex_;
  table counts_;
};

} // namespace troupe::actors::serve
