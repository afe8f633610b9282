#pragma once
// XXH3-128 over a canonical sequence of texts and numbers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

struct XXH3_state_s;

namespace troupe::compute {

/// Each part goes in with its length, so that "ab", "c" and "a", "bc" differ. Numbers go in as 8
/// little-endian bytes. One thread at a time.
class digester {
public:
  digester();

  digester& add(std::string_view text);
  digester& add(std::uint64_t number);
  std::array<std::byte, 16> value() const;

private:
  struct release {
    void operator()(XXH3_state_s* state) const;
  };

  std::unique_ptr<XXH3_state_s, release> state_;
};

} // namespace troupe::compute
